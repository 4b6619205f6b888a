"""Programs with one thread and with several, each loop in blocks of one point (DPL_BLOCK): output, and messages of
failures, are the same byte for byte."""

import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = [p for folder in ("cases", "programs") for p in sorted((HERE / folder).glob("*.dp"))]
FAILING = sorted((HERE.parent / "golden" / "run_errors").glob("*.dp"))
FEW = ("threads", "array_gradients")
TOLD = ("in_comprehension", "in_gradient", "in_threads")


def some(programs: list[Path], few: tuple[str, ...]):
    return [pytest.param(p, id=p.stem, marks=() if p.stem in few else pytest.mark.slow) for p in programs]


@pytest.mark.parametrize("program", [*some(PROGRAMS, FEW), *some(FAILING, TOLD)])
def test_numbers_of_threads(dpl, program: Path, tmp_path: Path) -> None:
    """Compiled once, from a copy: the cache may have the program with other blocks."""
    copied = shutil.copy(program, tmp_path)

    def run(threads: int) -> tuple[int, str, str]:
        made = dpl("run", copied, DPL_THREADS=str(threads), DPL_BLOCK="1")
        return made.returncode, made.stdout, made.stderr

    expected = run(1)
    assert [run(threads) for threads in (2, 3, 7)] == [expected] * 3


def test_option(dpl) -> None:
    made = dpl("run", "--threads", "2", "-e", "sum [for i < 100000 -> exp (float i * 1e-6)]")
    assert made.returncode == 0
    assert dpl("run", "--threads", "0", "-e", "1").returncode == 2
