"""Convolutions by kernels, in the interpreter of PTX, against the sums of their terms."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from dpl.prims.convolution import shapes, terms
from dplc.flat import term as f
from dplc.machine.cuda.kernels import Kernels
from dplc.machine.cuda.ptx import ptx
from dplc.passes.device.kernels import THREADS
from ptx_memory import Blocks
from ptx_run import Machine

NAMES = ("conv2d", "conv2d_data", "conv2d_weights")
TYPES = {"f64": np.float64, "f32": np.float32}
PLACES = (1 << 33, 1 << 34, 1 << 35)
IMAGES, WINDOWS = (2, 5, 4, 4), (3, 2, 2, 6)  # of two groups
STEPS = (2, 1, 1, 2, 2, 1, 2)
RESULT = (2, 2, 7, 6)


@cache
def text(ty: str) -> str:
    kernels = Kernels(f.Program())
    for wanted in range(3):
        kernels.convolution(wanted, ty)
    return ptx(kernels.text())


def arrays(ty: str) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.normal(size=size).astype(TYPES[ty]) for size in (RESULT, IMAGES, WINDOWS)]


def expected(wanted: int, given: list[np.ndarray]) -> np.ndarray:
    y, x, w = (array.reshape(-1) for array in given)
    made = np.zeros(given[wanted].size)
    for at in terms(RESULT, IMAGES, WINDOWS, *STEPS):
        a, b = ((x, w), (y, w), (x, y))[wanted]
        i, j = ((1, 2), (0, 2), (1, 0))[wanted]
        made[at[wanted]] += float(a[at[i]]) * float(b[at[j]])
    return made.reshape(given[wanted].shape)


def convolved(wanted: int, few: str, ty: str, given: list[np.ndarray], masked: int = 0) -> np.ndarray:
    """There are fewer blocks of threads than tiles."""
    factors = [given[k] for k in ((1, 2), (0, 2), (1, 0))[wanted]]
    made, blocks = np.full(given[wanted].shape, np.nan, TYPES[ty]), Blocks()
    machine = Machine(text(ty), blocks)
    machine.place_globals(1 << 32, np.zeros(machine.size_of_globals() + 8, np.uint8))
    for place, array in zip(PLACES, (made, *factors), strict=True):
        blocks.add(place, array.reshape(-1).view(np.uint8))
    (images, rows, places, outputs), (_, height, width, channels), (down, columns, inputs, _) = RESULT, IMAGES, WINDOWS
    pixels, window, some = images * rows * places, down * columns, outputs // STEPS[-1]
    m, n, k = [(pixels, some, window * inputs), (images * height * width, inputs, window * some),
               (window * inputs, some, pixels)][wanted]  # fmt: skip
    lengths = [m, n, k, channels, height, width, outputs, columns, rows, places, *STEPS, masked]
    machine.launch(f"conv{wanted}{few}_{ty}", 1, THREADS, [*PLACES, *lengths])
    return made


def test_the_sizes_are_those_of_the_language() -> None:
    assert shapes("conv2d", IMAGES, WINDOWS, 2, 2, 7)[0] == RESULT


@pytest.mark.parametrize("few", ["", "_few"])
@pytest.mark.parametrize("wanted", range(3), ids=NAMES)
@pytest.mark.parametrize("ty", TYPES)
def test_convolutions(ty: str, wanted: int, few: str) -> None:
    given = arrays(ty)
    made = convolved(wanted, few, ty, given)
    assert np.allclose(made, expected(wanted, given), rtol=1e-12 if ty == "f64" else 1e-4, atol=1e-5)


@pytest.mark.parametrize("few", ["", "_few"])
def test_infinity_meets_no_padding(few: str) -> None:
    """Only terms that there are become infinite, and zeros win where they are masked."""
    given = arrays("f64")
    given[2][0, 0, 1, 2] = np.inf
    with np.errstate(invalid="ignore"):
        assert np.array_equal(np.isfinite(convolved(0, few, "f64", given)), np.isfinite(expected(0, given)))
    given[1][:] = 0.0
    assert np.isnan(convolved(0, few, "f64", given)).any()
    assert np.array_equal(convolved(0, few, "f64", given, masked=1), np.zeros(RESULT))
