"""How large the examples and benchmarks become, counted: `sizes.txt` has a row for each.

lines            of LLVM text
kernels          parallel loops (Par)
loops            other loops
arrays           places where an array is made; arrays/loop: those in loops
counts           changes of reference counts; counts/loop: those in loops

All but the first are counted after the last stage on flat, library functions included.  A number may differ by 3 %, and
what is zero must stay so.  `pytest --bless tests/cost/test_code_sizes.py` rewrites the rows; say why they changed.
"""

from __future__ import annotations

import fcntl
import platform
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.syntax.load import read
from dplc.pipeline import Context, compile_from, compile_to
from dplc.stack import on_large_stack
from structure import counts

TABLE = Path(__file__).parent / "sizes.txt"
COLUMNS = ("lines", "kernels", "loops", "arrays", "arrays/loop", "counts", "counts/loop")
MARGIN = 0.03
MODULES = ("measure.dp", "descent.dp")  # that benchmarks import
# Those that take the compiler seconds are counted in the long run.
LONG = ("gaussian_process", "lantern", "neural_ode", "ntm", "resnet50", "squeezenet", "transformer")
PROGRAMS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
    for folder in ("examples", "benchmarks", "benchmarks/control")
    for path in sorted((ROOT / folder).glob("*.dp"))
    if path.name not in MODULES
]


def sizes(path: Path) -> list[int]:
    context = Context()
    flat = compile_to("reference_counts", read(path), context)[1]
    there = counts(flat, every=True)
    text, _ = compile_from("reference_counts", flat, "llvm", context)[1]
    loops = sum(there[kind] for kind in ("For", "While"))
    counted = [sum(there[inside + op] for op in ("dup", "drop", "take")) for inside in ("", "loop.")]
    return [text.count("\n"), there["Par"], loops, there["arrays"], there["loop.arrays"], *counted]


def rows() -> dict[str, list[int]]:
    lines = TABLE.read_text().splitlines()[1:] if TABLE.exists() else []
    return {name: list(map(int, numbers)) for name, *numbers in map(str.split, lines)}


def bless(name: str, now: list[int]) -> None:
    """Tests that run beside this one rewrite their own rows."""
    with TABLE.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        table = rows() | {name: now}
        head = f"{'':32}" + "".join(f"{column:>13}" for column in COLUMNS)
        lines = [f"{name:32}" + "".join(f"{number:>13}" for number in table[name]) for name in sorted(table)]
        file.truncate(0)
        file.write("\n".join([head, *lines, ""]))


@pytest.mark.skipif((platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="counted on x86-64 Linux")
@pytest.mark.parametrize("path", PROGRAMS)
def test_sizes(request: pytest.FixtureRequest, path: Path) -> None:
    name, now = str(path.relative_to(ROOT)), on_large_stack(lambda: sizes(path))
    if request.config.getoption("--bless"):
        bless(name, now)
    for column, old, new in zip(COLUMNS, rows()[name], now, strict=True):
        assert abs(new - old) <= MARGIN * old, f"{column}: {new}, not {old}"


def test_rows_are_of_programs() -> None:
    assert set(rows()) == {str(param.values[0].relative_to(ROOT)) for param in PROGRAMS}
