"""Scalar rows in machine code, against the table's own evaluation: the same bits."""

from __future__ import annotations

import math
import struct
from itertools import count
from random import Random

import pytest
from dpl.eval.values.scalar import cast as cast_of
from dpl.eval.values.scalar import scalar as meaning
from dpl.prims import TABLE
from dplc.machine.emit.scalars import maths
from dplc.machine.llvm.types import SCALARS
from library import Loaded, function
from mpmath import mp, mpf

FLOATS = ("f64", "f32", "f16")
INTEGERS = ("i64", "i8", "u8", "u64")
WHOLE = ("quot", "rem", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
BOTH = ("add", "sub", "mul", "div", "mod", "neg", "powi", "abs", "sign", "max", "min", "clip", "eq", "ne", "lt", "le")
SKIPPED = ("not", "and", "or", "select", "to_like", "polygamma")  # tested apart, or nothing to test
REAL = [
    name for name, row in TABLE.items()
    if row.elementwise and name not in (*WHOLE, *BOTH, *SKIPPED, "gt", "ge") and name[1:].rstrip("0123456789")
]  # fmt: skip
ROWS = [(row, ty) for row in (*BOTH, *REAL) for ty in FLOATS] + [
    (row, ty) for row in (*BOTH, *WHOLE) for ty in INTEGERS
]


def moved(ty: str) -> str:
    """As what a value travels to and from the function: halves as 16 bits."""
    return "i16" if ty == "f16" else SCALARS[ty]


def operand_types(row: str, ty: str) -> list[str]:
    return [ty, "i64"] if row == "powi" else [ty] * TABLE[row].arity


def wrapped(name: str, types: list[str], result: str, make) -> tuple[str, tuple[str, list[str]]]:
    """A function of values as they travel; `make(operands, fresh)` gives what `maths` does."""
    numbers = count()
    lines, operands = [], []
    for i, ty in enumerate(types):
        operands.append(f"%h{i}" if ty == "f16" else f"%a{i}")
        if ty == "f16":
            lines.append(f"%h{i} = bitcast i16 %a{i} to half")
    body, value = make(operands, lambda: f"%t{next(numbers)}")
    lines += body
    if value.startswith("%"):
        lines.append(f"%r = bitcast {SCALARS[result]} {value} to {moved(result)}")
    params = [moved(ty) for ty in types]
    return function(name, moved(result), params, lines), (moved(result), params)


@pytest.fixture(scope="module")
def rows() -> Loaded:
    texts, types = "", {}
    for row, ty in ROWS:
        result = "bool" if row in ("eq", "ne", "lt", "le") else ty
        operands = operand_types(row, ty)
        name = f"{row}.{ty}"
        text, types[name] = wrapped(name, operands, result, lambda a, n, r=row, t=ty: maths.scalar(r, t, a, n))
        texts += text
    for source in (*FLOATS, *INTEGERS, "bool"):
        for target in (*FLOATS, *INTEGERS):
            for wide in (False, True):
                name = f"{source}.to.{target}.{wide}"
                text, types[name] = wrapped(
                    name, [source], target, lambda a, n, s=source, t=target, w=wide: maths.cast(s, t, a[0], n, w)
                )
                texts += text
    body = ["%r = call double @rt.polygamma(i64 %a0, double %a1)"]
    texts += function("polygamma", "double", ["i64", "double"], body)
    return Loaded(texts, types | {"polygamma": ("double", ["i64", "double"])})


def travelling(x, ty: str):
    return struct.unpack("h", struct.pack("e", x))[0] if ty == "f16" else x


def arrived(x, ty: str):
    if ty == "f16":
        return struct.unpack("e", struct.pack("h", x))[0]
    return x % (1 << int(ty[1:])) if ty[0] == "u" else x


def same(a, b) -> bool:
    return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)


def samples(dice: Random, ty: str) -> float | int:
    if ty in INTEGERS:
        bits, low = int(ty[1:]), 0 if ty[0] == "u" else -(1 << int(ty[1:]) - 1)
        return dice.choice([0, 1, 2, low, low + (1 << bits) - 1, low + dice.randrange(1 << bits)] + [-1] * (low < 0))
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, math.inf, -math.inf, math.nan, 1e-3, 700.0, -40.0]
    return cast_of("f64", ty)(dice.choice([*special, dice.gauss(0, 1), dice.gauss(0, 1), dice.uniform(-30, 30)]))


@pytest.mark.parametrize(("row", "ty"), ROWS, ids=[f"{row}-{ty}" for row, ty in ROWS])
def test_rows_agree_with_the_table(rows: Loaded, row: str, ty: str) -> None:
    dice = Random(f"{row} {ty}")
    run, expected = rows[f"{row}.{ty}"], meaning(row, ty)
    types = operand_types(row, ty)
    for _ in range(60):
        args = [samples(dice, t) for t in types]
        if row == "powi":
            args[1] = dice.choice([-2, -1, 0, 1, 2, 3, 4, 5, 13, 70])
        if row.startswith("shift"):
            args[1] = dice.randrange(8)
        if row in ("div", "mod", "quot", "rem") and ty in INTEGERS and args[1] == 0:
            continue
        got = run(*(travelling(a, t) for a, t in zip(args, types, strict=True)))
        result = "bool" if isinstance(got, bool) else ty
        assert same(arrived(got, result), expected(*args)), (row, ty, args)


@pytest.mark.parametrize("source", (*FLOATS, *INTEGERS, "bool"))
def test_conversions_agree_with_the_table(rows: Loaded, source: str) -> None:
    dice = Random(source)
    for target in (*FLOATS, *INTEGERS):
        for _ in range(40):
            x = dice.random() < 0.5 if source == "bool" else samples(dice, source)
            if source in FLOATS and dice.random() < 0.3:
                x = cast_of("f64", source)(dice.choice([1e30, -1e30, 65519.9, 65520.1, 1e-8, 300.7, -300.7, 2.0**63]))
            for wide in (False, True):
                got = rows[f"{source}.to.{target}.{wide}"](travelling(x, source))
                assert same(arrived(got, target), cast_of(source, target)(x)), (source, target, x, wide)


EDGES = (1.0, 0.5, 1e-3, 8.0, 12.0, -2.0, -0.0, 1e-200, 1e200, math.inf, -math.inf, math.nan)


def test_polygamma(rows: Loaded) -> None:
    dice = Random(0)
    for _ in range(300):
        n, x = dice.randrange(7), dice.choice([dice.uniform(-5, 30), *EDGES])
        assert same(rows["polygamma"](n, x), TABLE["polygamma"].eval(n, x)), (n, x)


HARD = (1e-150, 1e-8, 0.5, 1.46163214496836, 3.00387, 7.999999999999999, 8.0, 11.999, 12.0, 40.0, 1e150, -1e-9, -0.5,
        -17.0124, -1000000.25)  # fmt: skip


@pytest.mark.parametrize("n", [pytest.param(n, marks=[pytest.mark.slow] if n < 3 else []) for n in (1, 2, 3, 10)])
def test_polygamma_is_near_the_truth(n: int) -> None:
    allowed = 4.0 if n == 1 else 16.0  # units of the last place
    for x in HARD:
        if n == 1 or 1e-9 < x < 1e10:
            true = mp.polygamma(n, mpf(x))
            assert abs(TABLE["polygamma"].eval(n, x) - true) <= allowed * math.ulp(float(true)), (n, x)


def test_polygamma_at_the_edges() -> None:
    trigamma = TABLE["polygamma"].eval
    assert all(math.isnan(trigamma(n, x)) for n in (1, 2) for x in (0.0, -3.0, -math.inf, math.nan))
    assert [trigamma(1, x) for x in (math.inf, 1e-200, -1e-200)] == [0.0, math.inf, math.inf]
