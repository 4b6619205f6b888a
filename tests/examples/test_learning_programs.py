"""Programs of `examples/` in small: what they learn comes near the numbers that their comments compare them with."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@pytest.fixture
def numbers(dpl):
    """The numbers in what an example prints."""

    def run(name: str, *args: str | Path) -> list[float]:
        made = dpl("run", ROOT / "examples" / f"{name}.dp", *args, DPL_CHECK="0")
        assert made.returncode == 0, made.stderr
        return [float(x) for x in NUMBER.findall(made.stdout)]

    return run


def test_inverse_kinematics(numbers) -> None:
    *_, place, direction = numbers("inverse_kinematics")
    assert place < 1e-6 and direction < 1e-6


def test_hyper_gradient(numbers) -> None:
    single, learned, *_ = numbers("hyper_gradient")
    assert (single, learned) == (0.2017, pytest.approx(0.0012, rel=0.05))


@pytest.mark.slow
def test_ray_tracer(numbers, tmp_path: Path) -> None:
    before, after, _ = numbers("ray_tracer", tmp_path / "balls.png")
    assert before > 0.05 and after < 1e-3
    assert (tmp_path / "balls.png").stat().st_size > 200_000


@pytest.mark.slow
def test_sentiment_tree(numbers, tmp_path: Path) -> None:
    """Phrases by heart; and a file of trees."""
    assert numbers("sentiment_tree")[-1] == 100
    trees = tmp_path / "trees.txt"
    trees.write_text("(4 (3 good) (2 film))\n(0 (1 bad) (2 film))\n(2 (2 a) (2 film))\n" * 10)
    assert len(numbers("sentiment_tree", trees, "2")) == 4


@pytest.mark.slow
def test_speech_ctc(numbers) -> None:
    """Steps and errors in turn, then what was written and heard."""
    found = numbers("speech_ctc", "300")
    assert found[1] > 50 and found[7] < 5


@pytest.mark.slow
def test_kalman(numbers) -> None:
    assert numbers("kalman") == [pytest.approx(x, rel=1e-3) for x in (15099, 1469.1, -632.54)]


@pytest.mark.slow
def test_gaussian_process(numbers) -> None:
    likelihood, _, _, _, mean, spread, _ = numbers("gaussian_process")
    assert [likelihood, mean, spread] == [pytest.approx(x, abs=2e-3) for x in (9.544, 2.502, 0.136)]


@pytest.mark.slow
def test_control(numbers) -> None:
    before, after, angle, speed = numbers("control")
    assert after < before / 100 and angle < 0.1 and speed < 0.1


@pytest.mark.slow
def test_char_lstm(dpl) -> None:
    made = dpl("run", ROOT / "examples" / "char_lstm.dp", DPL_CHECK="0")
    assert re.findall(r"step 600, (1\.[0-4]\d*) nats", made.stdout), made.stdout + made.stderr


@pytest.mark.slow
def test_ntm(numbers) -> None:
    assert numbers("ntm")[-1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "resnet50"])
def test_networks_on_weights_of_pytorch(numbers, name: str) -> None:
    """Eight scores, the loss, and the loss after a step."""
    wanted = json.loads((Path(__file__).parent / "references" / "networks.json").read_text())[name]
    assert numbers(name) == pytest.approx(wanted, rel=0, abs=1e-4)


@pytest.mark.slow
def test_pinn(numbers) -> None:
    *_, error = numbers("pinn", "1000")
    assert error < 1e-3


@pytest.mark.slow
def test_neural_ode(numbers, tmp_path: Path) -> None:
    before, after, *_ = numbers("neural_ode", "300", tmp_path / "way.svg")
    assert before > 0.5 and after < 0.01
    assert (tmp_path / "way.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_meta_learning(numbers) -> None:
    _, _, _, alike, _, learned = numbers("meta_learning", "1000")
    assert learned < 0.5 * alike


@pytest.mark.slow
def test_mnist_cnn(numbers) -> None:
    """On the small digits; on MNIST's 10,000 test pictures, of which 1,000 are for testing, 98.7 % are right."""
    assert max(numbers("mnist_cnn")[1::3]) > 95


@pytest.mark.slow
def test_vae(numbers, tmp_path: Path) -> None:
    _, before, after = numbers("vae", "60", tmp_path / "sheet.png")
    assert before < -40 and after > -26.4
    assert (tmp_path / "sheet.png").read_bytes()[16:24] == (400).to_bytes(4, "big") * 2


@pytest.mark.slow
def test_transformer(numbers, tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    _, before, _, after, *_ = numbers("transformer", ROOT / "stdlib" / "list.dp", "100", model)
    assert before > 4.5 and after < 3.5
    library = pytest.importorskip("safetensors.numpy", reason="the extra dev has safetensors")
    tensors = library.load_file(model)
    assert tensors["blocks.0.wide.weights"].shape == (48, 96) and tensors["letters"].dtype == np.float32
