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
from stand_in import Server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler, Linux"),
]

STEPS = Path(__file__).parent / "steps"
EACH = {
    "kmeans": {"launch": 4, "up": 1, "down": 4, "wait": 4},
    "recurrent": {"launch": 0, "up": 0, "down": 0, "wait": 0},
    "mixture": {"launch": 16, "up": 1, "down": 7, "wait": 5},
    "biases": {"launch": 4, "up": 0, "down": 1, "wait": 1},
}
LEAST = {"biases": "3000"}  # operations that are worth a launch


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
