"""The digits of derivatives: each row's slopes, in each argument, in f64 and f32, forward and reverse, in both engines,
within 4 units in the last place of the true ones (`digits.py`); second derivatives within 32.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from digits import SLOPES, curvature, distance, points, sort_of, truth
from dpl.eval.values.active import Dual
from dpl.eval.values.scalar import scalar
from dpl.prims import TABLE

SORTS = ("one", "two", "pow")
OPERATORS = {name: TABLE[name].op for name in SLOPES if TABLE[name].op}
STEPS = ("mod", "abs", "max", "min", "relu")  # whose slopes are steps


def literal(x: float) -> str:
    return f"({x!r})".replace("e+", "e")


def call(row: str, args: str) -> str:
    if row in OPERATORS:
        return args.replace(" ", f" {OPERATORS[row]} ")
    return f"-{args}" if row == "neg" else f"{row} {args}"


def roads(row: str) -> list[str]:
    """What prints all slopes of a row: for each argument forward, then reverse."""
    if len(SLOPES[row]) == 1:
        f = f"(fun (x : real) -> {call(row, 'x')})"
        return [f"map (fun x -> snd (jvp {f} x one)) one_0", f"map (fun x -> grad {f} x) one_0"]
    sort, lines = sort_of(row), []
    for x in "xy":
        f = f"(fun ({x} : real) -> {call(row, 'x y')})"
        lines += [f"map2 (fun x y -> {road}) {sort}_0 {sort}_1" for road in (f"snd (jvp {f} {x} one)", f"grad {f} {x}")]
    return lines


def program(kind: str) -> str:
    lines = [f"let one = {kind} 1.0", f"type real = {kind}"]
    for sort in SORTS:
        for i, column in enumerate(zip(*points(sort, kind))):
            lines.append(f"let {sort}_{i} = map {kind} [{', '.join(map(literal, column))}]")
    lines += [f'do print_string (show ({road}) ++ "\\n")' for row in SLOPES for road in roads(row)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", ["f64", "f32"])
def test_slopes_have_all_their_digits(dpl, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "slopes.dp"
    file.write_text(program(kind), encoding="utf-8")
    native, interp = (dpl("run", "--engine", *engine, file) for engine in (("native", "-O0"), ("interp",)))
    assert native.returncode == interp.returncode == 0, native.stderr + interp.stderr
    assert native.stdout == interp.stdout
    lines = iter(native.stdout.splitlines())
    bad = []
    for row in SLOPES:
        where = points(sort_of(row), kind)
        for i in range(len(SLOPES[row])):
            true = [truth(row, i, point) for point in where]
            for _ in ("forward", "reverse"):
                got = [float(x) for x in next(lines)[1:-1].split(", ")]
                for point, slope, exact in zip(where, got, true, strict=True):
                    if exact is not None and distance(row, slope, exact, point, kind) > 4.0:
                        bad.append(f"{row} {i} at {point}: {slope}")
    assert not bad, "\n".join(bad)


def bent(row: str, i: int, j: int, point: tuple[float, ...]) -> float:
    """Forward over forward."""
    args = [Dual(1, x, 1.0) if k == i else x for k, x in enumerate(point)]
    args = [Dual(2, x, 1.0) if k == j else x for k, x in enumerate(args)]
    y = scalar(row, "f64")(*args)
    slope = y.tangent if isinstance(y, Dual) and y.level == 2 else 0.0
    return slope.tangent if isinstance(slope, Dual) and slope.level == 1 else 0.0


@pytest.mark.parametrize("row", [row for row in SLOPES if row not in STEPS])
def test_second_derivatives_keep_their_digits(row: str) -> None:
    arguments = range(len(SLOPES[row]))
    for point in points(sort_of(row), "f64"):
        if not all(1e-11 < abs(x) < 50.0 for x in point):
            continue
        for i in arguments:
            for j in arguments:
                true = curvature(row, i, j, point)
                if true is not None:
                    got = bent(row, i, j, point)
                    assert distance(row, got, true, point, "f64") <= 32.0, (i, j, point, got, true)


def test_every_row_with_a_derivative_is_measured() -> None:
    """But for those of mixed arguments, and those that slopes are made of."""
    rows = {name for name, row in TABLE.items() if row.linear and any(row.linear) and row.samples}
    assert rows - SLOPES.keys() == {"clip"}
