"""The kernels of `machine/runtime/extrema.py`, on arrays of every length around that of a vector and of a block."""

import numpy as np
import pytest
from unit.machine.native import Main, native

LENGTHS = (1, 31, 32, 33, 95, 2047, 2049, 4200)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("ty", ["f64", "f32", "i64", "u8", "i16"])
def test_places_of_extrema(op: str, ty: str, capfd) -> None:
    m, want = Main(), []
    for n in LENGTHS:
        for multiplier in (0, 1, 7919, -1):
            index = m.op("iota", (m.int(n),))
            numbers = m.op("mod", (m.op("mul", (index, m.int(multiplier))), m.int(101)))
            m.number(m.op(op, (m.op("cast", (numbers,), to=ty),)))
            want.append(int(getattr(np, op)(np.arange(n) * multiplier % 101)))
    assert native(m.program(), capfd) == "".join(f"{k} " for k in want)


def test_the_first_nan_wins(capfd) -> None:
    m = Main()
    for n in LENGTHS:
        for at in {0, n // 2, n - 1}:
            zeros = m.op("fill", (m.int(n), m.float(0.0)))
            with_nan = m.op("update", (zeros, m.op("log", (m.float(-1.0),)), m.int(at)))
            m.number(m.op("argmax", (m.op("update", (with_nan, m.op("log", (m.float(-1.0),)), m.int(n - 1))),)))
    assert native(m.program(), capfd) == "".join(f"{at} " for n in LENGTHS for at in {0, n // 2, n - 1})
