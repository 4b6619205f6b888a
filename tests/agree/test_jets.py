"""Taylor mode against the derivatives of derivatives, and both engines, which do it differently, against each other.

A program in `jets/` defines `cases`, a list of points and functions; one in `gradients/` an `f : 'a -> float` and a
point `x0 : 'a`, through which a line is laid here.
"""

from math import isnan
from pathlib import Path

import pytest
from conftest import EFFORTS
from test_gradients import LONG as FOR_THE_COMPILER

HERE = Path(__file__).parent
ORDER = 3
LONG = (*FOR_THE_COMPILER, "parted_sums")
LINES = [  # a third of them, without the longest, is quick
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if at % 3 or path.stem in LONG else [])
    for at, path in enumerate(sorted((HERE / "gradients").glob("*.dp")))
]

LINE = """
let _v = Tree.map (fun x -> cos (3.0 * x + 0.5)) x0
let cases = [(0.0, fun s -> f (Tree.axpy s _v x0));]
"""
JETS = f"""
do List.iter (fun (x, f) -> print_string (show (Ad.jet {ORDER} f x) ++ "\\n")) cases
"""
NESTED = """
let _nested f x =
  [f x, diff f x, diff (fun x -> diff f x) x, diff (fun x -> diff (fun x -> diff f x) x) x]
do List.iter (fun (x, f) -> print_string (show (_nested f x) ++ "\\n")) cases
"""


def close(a: float, b: float) -> bool:
    return a == b or (isnan(a) and isnan(b)) or abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


def run(dpl, file: Path, text: str, *engine: str) -> list[list[float]]:
    file.write_text(text, encoding="utf-8")
    done = dpl("run", "--engine", *engine, file)
    assert done.returncode == 0, done.stderr
    assert "interpreter" not in done.stderr, done.stderr
    return [[float(x) for x in line[1:-1].split(",")] for line in done.stdout.splitlines()]


def agree(found: list[list[float]], wanted: list[list[float]]) -> None:
    assert len(found) == len(wanted)
    for case, pair in enumerate(zip(found, wanted, strict=True)):
        assert len(pair[0]) == ORDER + 1
        assert all(close(a, b) for a, b in zip(*pair, strict=True)), (case, *pair)


def check(dpl, text: str, file: Path, effort: str) -> None:
    both = run(dpl, file, text + JETS + NESTED, "interp")
    jets, nested = both[: len(both) // 2], both[len(both) // 2 :]
    agree(jets, nested)
    agree(run(dpl, file, text + JETS, "native", effort), jets)


@EFFORTS
@pytest.mark.parametrize("program", sorted((HERE / "jets").glob("*.dp")), ids=lambda p: p.stem)
def test_jets(dpl, program: Path, effort: str, tmp_path: Path) -> None:
    check(dpl, program.read_text(encoding="utf-8"), tmp_path / program.name, effort)


@EFFORTS
@pytest.mark.parametrize("program", LINES)
def test_along_a_line(dpl, program: Path, effort: str, tmp_path: Path) -> None:
    check(dpl, program.read_text(encoding="utf-8") + LINE, tmp_path / program.name, effort)
