"""Sums, inner products, matrix products and transposition, against exact arithmetic on small integers."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from math import inf, isnan, nan
from operator import add, mul
from random import Random

import pytest
from dpl.prims import sums
from dplc.machine.runtime import tiles
from dplc.machine.runtime.shapes import Vectors
from library import MACHINES, Loaded, forwarding

ELEMENTS = {"f64": (ctypes.c_double, "double"), "f32": (ctypes.c_float, "float"), "i32": (ctypes.c_int32, "i32")}
MATMUL = ("ptr", "ptr", "ptr", "i64", "i64", "i64", "i1", "i1", "i1", "i64")
DOT = ("ptr", "ptr", "i64")
SIZES = (
    (1, 1, 1), (1, 5, 3), (5, 1, 3), (3, 4, 0), (2, 3, 4), (7, 9, 1), (13, 25, 31), (9, 24, 300), (1, 70, 20),
    (70, 1, 20), (1, 1, 40), (17, 130, 20), (9, 21, 1), (33, 49, 257),
    (1, 2060, 13), (1030, 1, 271),
)  # fmt: skip


@pytest.fixture(scope="module", params=MACHINES, ids=MACHINES)
def kernels(request: pytest.FixtureRequest) -> Loaded:
    text, types = "", {}
    for ty, (_, llvm) in ELEMENTS.items():
        for name, result, params in (
            ("matmul", "void", MATMUL), ("sum", llvm, ("ptr", "i64")), ("dot", llvm, DOT),
            *([("masked_dot", llvm, (*DOT, "i64"))] if ty[0] == "f" else []),
        ):  # fmt: skip
            text += forwarding(f"{name}.{ty}", f"rt.{name}.{ty}", result, params)
            types[f"{name}.{ty}"] = (result, params)
    for size in ("1", "2", "4", "8", "n"):
        params = ("ptr", "ptr", "i64", "i64", *(["i64"] if size == "n" else []))
        text += forwarding(f"transpose.{size}", f"rt.transpose.{size}", "void", params)
        types[f"transpose.{size}"] = ("void", params)
    return Loaded(text, types, MACHINES[request.param])


def numbers(dice: Random, count: int) -> list[int]:
    return [dice.randrange(-4, 5) for _ in range(count)]


def product(a: list[int], b: list[int], m: int, n: int, k: int) -> list[int]:
    columns = [b[j::n] for j in range(n)]
    return [sum(map(int.__mul__, a[i * k : (i + 1) * k], columns[j])) for i in range(m) for j in range(n)]


def transposed(a: Sequence, rows: int, columns: int) -> list:
    return [a[i * columns + j] for j in range(columns) for i in range(rows)]


def test_masks_of_avx2_are_made_before_the_loop() -> None:
    """LLVM would make its own anew at each step of the depth, and on Zen 3 a masked store takes twelve cycles."""
    text = tiles.tile(Vectors(32, True), "tile", "4", "3", "f32")
    loop = text[text.index("loop:") : text.index("end:")]
    assert "@llvm.x86.avx.maskload.ps.256" in loop
    assert "icmp sgt" not in loop and "sext" not in loop
    stores = re.findall(r"(\w+\.all|\w+\.some):\n((?:.*\n)*?  ret)", text)
    assert {label: body.count("maskstore") for label, body in stores} == {
        "set.all": 0, "set.some": 4, "add.all": 0, "add.some": 4,
    }  # fmt: skip
    assert "maskload" not in tiles.tile(Vectors(64, True), "tile", "4", "3", "f32")


@pytest.mark.parametrize("ty", ELEMENTS)
def test_matrix_products(kernels: Loaded, ty: str) -> None:
    dice, c_type = Random(1), ELEMENTS[ty][0]
    for m, n, k in SIZES:
        a, b = numbers(dice, m * k), numbers(dice, k * n)
        expected = product(a, b, m, n, k)
        for ta in (False, True):
            for tb in (False, True):
                left = (c_type * (m * k))(*(transposed(a, m, k) if ta else a))
                right = (c_type * (k * n))(*(transposed(b, k, n) if tb else b))
                for acc in (False, True):
                    c = (c_type * (m * n))(*[7] * (m * n))
                    kernels[f"matmul.{ty}"](c, left, right, m, n, k, ta, tb, acc, 0)
                    assert list(c) == [x + 7 * acc for x in expected], (m, n, k, ta, tb, acc)


def masked_product(a: list[float], b: list[float], m: int, n: int, k: int, zeros: int) -> list[float]:
    def term(x: float, y: float) -> float:
        wins = (zeros & 1 and x == 0.0) or (zeros & 2 and y == 0.0)
        return 0.0 if wins and isnan(x * y) else x * y

    columns = [b[j::n] for j in range(n)]
    return [sum(map(term, a[i * k : (i + 1) * k], columns[j])) for i in range(m) for j in range(n)]


def same(found: Sequence[float], expected: Sequence[float]) -> bool:
    return all(x == y or (isnan(x) and isnan(y)) for x, y in zip(found, expected, strict=True))


@pytest.mark.parametrize("ty", ["f64", "f32"])
def test_masked_products(kernels: Loaded, ty: str) -> None:
    """Zeros of the masked factors win over infinities and NaN of the others."""
    dice, c_type = Random(5), ELEMENTS[ty][0]
    for m, n, k in SIZES:
        a, b = ([float(x) for x in numbers(dice, count)] for count in (m * k, k * n))
        for values in (a, b):
            for _ in range(min(3, len(values))):
                values[dice.randrange(len(values))] = dice.choice([inf, -inf, nan])
        expected = {zeros: masked_product(a, b, m, n, k, zeros) for zeros in (1, 2, 3)}
        for ta in (False, True):
            left = (c_type * (m * k))(*(transposed(a, m, k) if ta else a))
            for tb in (False, True):
                right = (c_type * (k * n))(*(transposed(b, k, n) if tb else b))
                for zeros, masked in expected.items():
                    for acc in (False, True):
                        c = (c_type * (m * n))(*[7] * (m * n))
                        kernels[f"matmul.{ty}"](c, left, right, m, n, k, ta, tb, acc, zeros)
                        assert same(c, [x + 7 * acc for x in masked]), (m, n, k, ta, tb, zeros, acc)
                        if m == n == 1:
                            assert same([kernels[f"masked_dot.{ty}"](left, right, k, zeros)], masked)


@pytest.mark.parametrize("ty", ELEMENTS)
def test_sums_and_inner_products(kernels: Loaded, ty: str) -> None:
    dice, c_type = Random(2), ELEMENTS[ty][0]
    for n in (0, 1, 15, 16, 17, 31, 32, 33, 64, 100, 1000):
        a, b = numbers(dice, n), numbers(dice, n)
        assert kernels[f"sum.{ty}"]((c_type * n)(*a), n) == sum(a)
        assert kernels[f"dot.{ty}"]((c_type * n)(*a), (c_type * n)(*b), n) == sum(map(int.__mul__, a, b))


def test_transposition(kernels: Loaded) -> None:
    dice = Random(3)
    for size, c_type in (("1", ctypes.c_int8), ("2", ctypes.c_int16), ("4", ctypes.c_int32), ("8", ctypes.c_int64)):
        for rows, columns in ((1, 1), (3, 0), (5, 7), (37, 50)):
            a, out = numbers(dice, rows * columns), (c_type * (rows * columns))()
            for name, extra in ((size, ()), ("n", (int(size),))):
                kernels[f"transpose.{name}"](out, (c_type * len(a))(*a), rows, columns, *extra)
                assert list(out) == transposed(a, rows, columns)


@pytest.mark.parametrize("machine", MACHINES)
def test_sums_have_one_order_whatever_the_vectors(machine: str) -> None:
    dice = Random(4)
    a, b = ([dice.gauss(0, 1) for _ in range(7 * sums.BLOCK + 11)] for _ in range(2))
    text = forwarding("sum", "rt.sum.f64", "double", ("ptr", "i64"))
    text += forwarding("dot", "rt.dot.f64", "double", ("ptr", "ptr", "i64"))
    types = {"sum": ("double", ("ptr", "i64")), "dot": ("double", ("ptr", "ptr", "i64"))}
    loaded, c_type = Loaded(text, types, MACHINES[machine]), ctypes.c_double * len(a)
    sizes = (0, 1, 15, 16, 31, 33, 63, 64, 1000, 1023, 1024, 1025, 2048, 2049, 3077, 5000, 7 * 1024, len(a))
    for n in sizes:
        assert loaded["sum"](c_type(*a), n) == sums.total(add, 0.0, a[:n])
        assert loaded["dot"](c_type(*a), c_type(*b), n) == sums.total(add, 0.0, list(map(mul, a[:n], b[:n])))
