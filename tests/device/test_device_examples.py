"""The examples and `benchmarks/programs/` on a device: short runs print what the CPU prints.  The stand-in interprets
the kernels, so loops of less than LEAST operations stay on the host."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import assert_same_output
from examples.test_programs import SHORT
from stand_in import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux"),
]

LEAST = "500"
SECONDS = 600
TEXT = "tests/device/programs/tree.dp"  # that models of characters learn
TREES = "tests/device/programs/trees.txt"
# The arguments of a short run; `OUT` is a file that it writes.
EXAMPLES = {
    "01_line": (), "02_tree_gradient": (), "03_coin": (), "04_newton": (), "08_rain": (), "09_queens": (),
    "char_rnn": (TEXT, "1"), "control": ("1",), "eight_schools": ("8",), "hyper_gradient": ("1",),
    "inverse_kinematics": (),
    "meta_learning": ("1",), "neural_ode": ("1", "OUT.svg"), "pinn": ("1",), "sentiment_tree": (TREES, "4"),
    "speech_ctc": ("1",),
    "transformer": (TEXT, "1", "OUT.safetensors"), "vae": ("1", "OUT.png"),
}  # fmt: skip
RUNS = [(f"examples/{name}.dp", args) for name, args in EXAMPLES.items()]
SIZES = {**SHORT, "planets": 1}  # a step of the flight takes the interpreter some seconds
RUNS += [(f"benchmarks/programs/{name}.dp", (str(size),)) for name, size in SIZES.items()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("device"))
    yield made
    made.close()


@pytest.mark.parametrize(("program", "args"), [pytest.param(*run, id=Path(run[0]).stem) for run in RUNS])
def test_same_output(dpl, server: Server, tmp_path: Path, program: str, args: tuple[str, ...]) -> None:
    told, words = len(server.complaints()), [word.replace("OUT", str(tmp_path / "out")) for word in args]
    ours, others = (
        dpl("run", "--engine", "native", "--device", device, program, *words,
            timeout=SECONDS, DPL_CHECK="0", DPL_DEVICE_LEAST=LEAST, **server.environment)
        for device in ("cpu", "gpu")
    )  # fmt: skip
    assert not server.complaints()[told:]
    assert (ours.returncode, others.returncode) == (0, 0), others.stderr
    assert_same_output(others.stdout, ours.stdout, rel=1e-6)
