"""Products of matrices by kernels, in the interpreter of PTX, against NumPy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from dplc.flat import term as f
from dplc.machine.cuda import products
from dplc.machine.cuda.kernels import Kernels
from dplc.machine.cuda.ptx import ptx
from dplc.passes.device.kernels import THREADS
from ptx_memory import Blocks
from ptx_run import Machine

TYPES = {"f64": np.float64, "f32": np.float32}
A, B, C = 1 << 33, 1 << 34, 1 << 35


@cache
def text() -> str:
    kernels = Kernels(f.Program())
    for ty in TYPES:
        kernels.product(ty)
    return ptx(kernels.text())


def multiplied(name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, ta: bool, tb: bool, masked: int) -> np.ndarray:
    """c + a b, where the factors may be stored transposed.  There are fewer blocks of threads than tiles."""
    (m, k), n, made, ty = a.shape, b.shape[1], c.copy(), "f64" if a.dtype == np.float64 else "f32"
    stored = [np.ascontiguousarray(x.T if t else x) for x, t in ((a, ta), (b, tb))]
    blocks = Blocks()
    machine = Machine(text(), blocks)
    machine.place_globals(1 << 32, np.zeros(machine.size_of_globals() + 8, np.uint8))
    for place, array in zip((A, B, C), (*stored, made), strict=True):
        blocks.add(place, array.reshape(-1).view(np.uint8))
    steps = [*((1, m) if ta else (k, 1)), *((1, k) if tb else (n, 1))]
    machine.launch(f"{name}_{ty}", 2, THREADS, [C, A, B, m, n, k, *steps, 1, masked])
    return made


@pytest.mark.parametrize(
    ("ty", "name", "m", "n", "k", "ta", "tb"),
    [
        ("f64", "matmul", 66, 5, 19, False, False),
        ("f32", "matmul", 9, 12, 17, True, True),
        ("f64", "dots", 5, 3, 40, False, True),
        ("f32", "dots", 1, 9, 40, True, False),
    ],
)
def test_products(ty: str, name: str, m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    random = np.random.default_rng(1)
    a, b, c = (random.normal(size=size).astype(TYPES[ty]) for size in ((m, k), (k, n), (m, n)))
    made = multiplied(name, a, b, c, ta, tb, 0)
    assert np.allclose(made, c + a @ b, rtol=1e-12 if ty == "f64" else 1e-4, atol=1e-14 if ty == "f64" else 1e-5)


@pytest.mark.parametrize(("name", "masked"), [("matmul", 3), ("dots", 0), ("dots", 1), ("dots", 2)])
def test_zeros_win_where_they_are_masked(name: str, masked: int) -> None:
    a, b, c = np.ones((5, 8)), np.ones((8, 7)), np.zeros((5, 7))
    a[0, 3], b[3, 2] = 0.0, np.inf
    a[4, 5], b[5, 6] = np.nan, 0.0
    made = multiplied(name, a, b, c, False, False, masked)
    assert (made[0, 2] == 7.0) == bool(masked & 1) and np.isnan(made[0, 2]) != bool(masked & 1)
    assert (made[4, 6] == 7.0) == bool(masked & 2) and np.isnan(made[4, 6]) != bool(masked & 2)
    assert made[1, 2] == np.inf and np.isnan(made[4, 0]) and made[2, 3] == 8.0


def test_few_elements_have_a_warp_each() -> None:
    assert products.chosen("f64", 1, 784) == ("dots_f64", 98)
    assert products.chosen("f32", 512, 256) == ("matmul_f32", 32)
