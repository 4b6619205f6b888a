"""Programs whose functions are replaced by optimised ones while they run: the output is the same (`tiered.py`)."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

HERE = Path(__file__).parent
PROGRAMS = [p for folder in ("cases", "programs") for p in sorted((HERE / folder).glob("*.dp"))]
FEW = ("models", "control_frames", "regressions", "collected")


def some(program: Path, moment: str):
    slow = () if program.stem in FEW and moment == "steps" else pytest.mark.slow
    return pytest.param(program, moment, id=f"{program.stem}-{moment}", marks=slow)


def early(program: Path) -> str:
    """A random moment in the first milliseconds."""
    return f"{random.Random(program.stem).uniform(0, 0.004):.4f}"


@pytest.mark.parametrize(
    "program, moment", [some(p, moment) for p in PROGRAMS for moment in ("before", "steps", early(p))]
)
def test_output(cache: Path, program: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))
    command = [sys.executable, str(HERE / "tiered.py"), str(program.relative_to(ROOT)), moment]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120)
    assert made.returncode == 0, made.stderr
    assert_same_output(made.stdout, program.with_suffix(".out").read_text(encoding="utf-8"))
