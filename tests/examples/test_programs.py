"""The programs of `benchmarks/programs/` print what they should: short runs by both engines, whole ones natively."""

from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

EXPECTED = Path(__file__).parent / "programs"
PROGRAMS = ROOT / "benchmarks" / "programs"
# The argument of a short run: steps, observations or samples.
SHORT = {
    "autoencoder": 2,
    "gaussian_process": 1,
    "interpreter": 1,
    "kalman": 20,
    "physics_informed": 1,
    "planets": 20,
    "sampler": 3,
    "transformer": 1,
    "tree_lstm": 0,
    "turing_machine": 1,
}
QUICK_TO_COMPILE = {"kalman", "planets", "sampler", "tree_lstm"}
QUICK_TO_INTERPRET = {"interpreter", "kalman"}


def marked(quick: set[str]) -> list:
    return [pytest.param(name, id=name, marks=[] if name in quick else [pytest.mark.slow]) for name in SHORT]


@pytest.mark.parametrize("name", marked(QUICK_TO_COMPILE))
def test_natively(dpl, name: str) -> None:
    prints(dpl("run", "--engine", "native", "-O0", PROGRAMS / f"{name}.dp", str(SHORT[name])), f"{name}.short.out")


@pytest.mark.parametrize("name", marked(QUICK_TO_INTERPRET))
def test_interpreted(dpl, name: str) -> None:
    prints(dpl("run", "--engine", "interp", PROGRAMS / f"{name}.dp", str(SHORT[name])), f"{name}.short.out")


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_whole_runs(dpl, name: str) -> None:
    prints(dpl("run", PROGRAMS / f"{name}.dp"), f"{name}.out")


def prints(run, transcript: str) -> None:
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, (EXPECTED / transcript).read_text(encoding="utf-8"))


def test_every_program_is_tested() -> None:
    assert set(SHORT) == {path.stem for path in PROGRAMS.glob("*.dp")}
