"""What a step of a training loop asks of a device: launches, copies, and waits of the host, counted by the stand-in.

`steps/NAME.dp` is a program that does one step, or two if its argument is 2.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import every
from dplc.machine.cuda.host import device_of
from dplc.machine.cuda.kernels import Kernels, outermost
from dplc.machine.emit.program import emit_program
from dplc.pipeline import Context, compile_to
from stand_in import Server

STEPS = Path(__file__).parent / "steps"
EACH = {
    "kmeans": {"launch": 5, "up": 0, "down": 0, "wait": 0},
    "recurrent": {"launch": 0, "up": 0, "down": 0, "wait": 0},
    "mixture": {"launch": 1, "up": 0, "down": 1, "wait": 1},
    "layers": {"launch": 22, "up": 1, "down": 3, "wait": 3},
    "biases": {"launch": 4, "up": 0, "down": 0, "wait": 0},
    "fit": {"launch": 5, "up": 0, "down": 0, "wait": 0},
    "few_biases": {"launch": 12, "up": 0, "down": 0, "wait": 0},
    "slices": {"launch": 44, "up": 1, "down": 0, "wait": 0},
    "embedding": {"launch": 9, "up": 0, "down": 0, "wait": 0},
    "clusters": {"launch": 5, "up": 1, "down": 0, "wait": 0},
    "memories": {"launch": 44, "up": 1, "down": 0, "wait": 0},
}
LEAST = {"biases": "3000"}  # operations that are worth a launch


def test_the_host_needs_no_numbers_of_a_step() -> None:
    """Arrays of few elements stay arrays where a loop does much besides."""
    text = (STEPS / "few_biases.dp").read_text(encoding="utf-8")
    program = compile_to("place", Source("few_biases.dp", text), Context(device=True))[1]
    loops = [bind.rhs for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.For)]
    (step,) = [loop for loop in loops if "matmul" in operations(loop.body)]
    assert [rank_of(var.ty) for var in step.state] == [2, 1, 2, 1] and "need_host" not in operations(step.body)


@pytest.mark.parametrize("name", ["embedding", "clusters"])
def test_the_host_waits_for_no_record_of_a_step(name: str) -> None:
    """The lengths of rows are known in kernels, so these need no memory, and compare none; so are those of branches."""
    text = (STEPS / f"{name}.dp").read_text(encoding="utf-8")
    program = compile_to("reference_counts", Source(f"{name}.dp", text), Context(device=True))[1]
    kernels = Kernels(program)
    made = [kernels.of(par, fn) for fn, par in outermost(program) if fn.name.startswith("loop")]
    assert made and not any(kernel is None or kernel.fails for kernel in made)


def test_numbers_are_added_up_and_fetched_together() -> None:
    text = """
let xs = [for i < 5000 -> sin (float i)]
do print (grad (fun (a, b, c) -> sum [for x in xs -> a * x + b * x * x + sin (c * x)]) (0.1, 0.2, 0.3))
"""
    program = compile_to("reference_counts", Source("sums.dp", text), Context(device=True))[1]
    made, _ = emit_program(program, lambda _: "", versions=True, device=device_of(program))
    assert made.count("call void @rt.fetch_later(") == made.count('@rt.device_launch(ptr @"kernel tree_f64"') == 1


def operations(block: f.Block) -> set[str]:
    return {bind.rhs.op for bind in every(block) if isinstance(bind.rhs, f.Op)}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux")
@pytest.mark.parametrize("name", EACH)
def test_a_step(dpl, tmp_path: Path, name: str) -> None:
    server = Server(tmp_path)
    done: list[Counter[str]] = []
    try:
        for steps in ("1", "2"):
            log = tmp_path / f"log{steps}"
            args = ("run", "--engine", "native", (STEPS / f"{name}.dp").relative_to(ROOT), steps)
            env = {"DPL_DEVICE_LEAST": LEAST.get(name, "1"), "DPL_STAND_IN_LOG": str(log)}
            there, here = (dpl(*args, DPL_DEVICE=device, **env, **server.environment) for device in ("gpu", "cpu"))
            assert (there.returncode, here.returncode) == (0, 0), there.stderr
            assert_same_output(there.stdout, here.stdout)
            done.append(Counter(line.split()[0] for line in log.read_text(encoding="utf-8").splitlines()))
        assert not server.complaints()
    finally:
        server.close()
    assert {what: done[1][what] - done[0][what] for what in EACH[name]} == EACH[name]
