"""Convolutions and their transposes by the runtime library, against their terms, on small integers."""

from __future__ import annotations

import ctypes
from math import inf, isnan, prod
from random import Random

import pytest
from dpl.prims.convolution import WANTED, shapes, terms
from library import MACHINES, Loaded, forwarding

ELEMENTS = {"f64": ctypes.c_double, "f32": ctypes.c_float}
PARAMS = ("i64", "ptr", "ptr", "ptr", *["i64"] * 17)
# x, w, then steps, padding, gaps, groups
CASES = (
    ((2, 8, 8, 1), (3, 3, 1, 3), (1, 1, 0, 0, 1, 1, 1)),
    ((2, 9, 7, 4), (3, 2, 2, 6), (2, 1, 1, 2, 1, 2, 2)),
    ((1, 12, 5, 6), (3, 3, 1, 6), (1, 1, 1, 1, 1, 1, 6)),
    ((1, 4, 3, 33), (3, 2, 33, 26), (1, 2, 1, 1, 1, 1, 1)),
    ((1, 1, 20, 2), (1, 5, 2, 130), (1, 3, 0, 2, 1, 2, 1)),
    ((1, 5, 5, 2), (5, 5, 2, 4), (1, 1, 0, 0, 1, 1, 1)),
    ((1, 5, 5, 0), (2, 2, 0, 4), (1, 1, 0, 0, 1, 1, 1)),
    ((0, 5, 5, 1), (2, 2, 1, 4), (1, 1, 0, 0, 1, 1, 1)),
)  # fmt: skip


@pytest.fixture(scope="module", params=MACHINES)
def kernels(request: pytest.FixtureRequest) -> Loaded:
    text = "".join(forwarding(ty, f"rt.convolve.{ty}", "void", PARAMS) for ty in ELEMENTS)
    return Loaded(text, {ty: ("void", PARAMS) for ty in ELEMENTS}, MACHINES[request.param])


def places(size: int, window: int, step: int, padding: int, gap: int) -> int:
    return (size + 2 * padding - gap * (window - 1) - 1) // step + 1


def masked(a: float, b: float, zeros: int) -> float:
    wins = (zeros & 1 and a == 0.0) or (zeros & 2 and b == 0.0)
    return 0.0 if wins and isnan(a * b) else a * b


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("ty", ELEMENTS)
def test_convolutions(kernels: Loaded, ty: str, name: str) -> None:
    dice, wanted = Random(name), WANTED[name]
    for x_shape, w_shape, steps in CASES:
        sizes = [places(x_shape[k + 1], w_shape[k], *steps[k:6:2]) for k in (0, 1)]
        all_shapes = shapes("conv2d", x_shape, w_shape, steps[6], *sizes)
        for zeros in (0, 1 + wanted % 2, 3):
            arrays = [[float(dice.randrange(-4, 5)) for _ in range(prod(shape))] for shape in all_shapes]
            left, right = [(1, 2), (0, 2), (1, 0)][wanted]
            if zeros:
                for factor in (left, right):
                    if arrays[factor]:
                        arrays[factor][dice.randrange(len(arrays[factor]))] = inf
            expected = [0.0] * len(arrays[wanted])
            for at in terms(*all_shapes, *steps):
                expected[at[wanted]] += masked(arrays[left][at[left]], arrays[right][at[right]], zeros)
            given = [(ELEMENTS[ty] * len(a))(*a) for a in arrays]
            numbers = (*x_shape[:1], x_shape[3], *x_shape[1:3], w_shape[3], *w_shape[:2], *sizes, *steps, zeros)
            kernels[ty](wanted, *given, *numbers)
            same = [a == b or (isnan(a) and isnan(b)) for a, b in zip(given[wanted], expected, strict=True)]
            assert all(same), (name, x_shape, w_shape, steps, zeros)
