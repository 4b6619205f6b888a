"""Programs on a device: every parallel loop, however short, is done by the stand-in, and the output is the same."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output
from stand_in import Server

pytestmark = pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")

AGREE = ROOT / "tests" / "agree"
FAILURES = sorted((ROOT / "tests" / "golden" / "run_errors").glob("*.dp"))
PROGRAMS = [p for folder in ("cases", "programs") for p in sorted((AGREE / folder).glob("*.dp"))]
QUICK = (
    "comprehensions",
    "stencils",
    "array_gradients",
    "array_rows",
    "in_comprehension",
    "in_gradient",
    "in_map",
    "convolutions",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("device"))
    yield made
    made.close()


@pytest.fixture
def on_device(dpl, server: Server):
    """Runs a program on the device; it must make no mistake there."""

    def run(*args: str | Path, **env: str):
        before = len(server.complaints())
        ran = dpl("run", "--device", "gpu", *args, **{**server.environment, "DPL_DEVICE_LEAST": "1", **env})
        assert not (said := server.complaints()[before:]), said
        return ran

    return run


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, marks=() if p.stem in QUICK else pytest.mark.slow, id=p.stem) for p in PROGRAMS],
)
def test_same_output(on_device, program: Path) -> None:
    run = on_device("--engine", "native", program.relative_to(ROOT))
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, program.with_suffix(".out").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, marks=() if p.stem in QUICK else pytest.mark.slow, id=p.stem) for p in FAILURES],
)
def test_same_failure(on_device, dpl, program: Path) -> None:
    """The host does the points of a loop again in which one has failed: same message, place and path."""
    place = program.relative_to(ROOT)
    there, here = on_device("--engine", "native", place), dpl("run", "--engine", "native", place)
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_numbers_are_aligned(on_device, tmp_path: Path) -> None:
    """Also in an accumulator that has grown at its front, with room for more: kernels need that."""
    program = tmp_path / "series.dp"
    source = "do print (grad (fun x -> fst (Ad.diffn 2 (fun t -> (x * t ** 3, x * x * t * t)) 2.0)) 3.0)\n"
    program.write_text(source, encoding="utf-8")
    run = on_device("--engine", "native", program)
    assert (run.returncode, run.stdout) == (0, "12.0\n"), run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(10))
def test_random_programs(server: Server, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    from doubt.oracle import DEVICE
    from doubt.programs import Size
    from doubt.test_random_programs import doubt

    for name, value in {**server.environment, "DPL_DEVICE": "gpu", "DPL_DEVICE_LEAST": "1"}.items():
        monkeypatch.setenv(name, value)
    doubt(batch, 50, Size(budget=14, depth=3, definitions=1), lambda *_: DEVICE)
    assert not server.complaints()
