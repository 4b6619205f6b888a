"""Programs whose functions are replaced by optimised ones while they run: the output is the same (`tiered.py`)."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

HERE = Path(__file__).parent
PROGRAMS = [p for folder in ("cases", "programs") for p in sorted((HERE / folder).glob("*.dp"))]
FAILING = sorted((HERE.parent / "golden" / "run_errors").glob("*.dp"))
TOLD = ("in_gradient", "in_map")
FEW = ("models", "control_frames", "regressions", "collected")


def some(program: Path, moment: str):
    slow = () if program.stem in FEW and moment == "steps" else pytest.mark.slow
    return pytest.param(program, moment, id=f"{program.stem}-{moment}", marks=slow)


def early(program: Path) -> str:
    """A random moment in the first milliseconds."""
    return f"{random.Random(program.stem).uniform(0, 0.004):.4f}"


def run(cache: Path, program: Path, moment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "tiered.py"), str(program.relative_to(ROOT)), moment]
    env = {**os.environ, "DPL_CACHE": str(cache)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", timeout=120)


@pytest.mark.parametrize(
    "program, moment", [some(p, moment) for p in PROGRAMS for moment in ("before", "steps", early(p))]
)
def test_output(cache: Path, program: Path, moment: str) -> None:
    made = run(cache, program, moment)
    assert made.returncode == 0, made.stderr
    assert_same_output(made.stdout, program.with_suffix(".out").read_text(encoding="utf-8"))


@pytest.mark.parametrize("program", [p if p.stem in TOLD else pytest.param(p, marks=pytest.mark.slow) for p in FAILING])
def test_failures(cache: Path, dpl, program: Path) -> None:
    """A failure in functions that were replaced has the same message and path of calls."""
    made = run(cache, program, "before")
    wanted = dpl("run", "-O", "0", program.relative_to(ROOT))
    assert (made.returncode, made.stdout, made.stderr) == (wanted.returncode, wanted.stdout, wanted.stderr)
