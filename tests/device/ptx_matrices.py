"""Matrix instructions of PTX: a warp multiplies small matrices, of which each thread has some numbers."""

from __future__ import annotations

import numpy as np
from ptx_scalars import Bits, bits_of, exact_fma, numbers

WARP = 32


def multiplied(a: Bits, b: Bits, c: list[Bits]) -> list[Bits]:
    """mma.m8n8k4 of f64: the numbers of whole warps, in order of threads."""
    lane = np.arange(WARP)
    row, column = lane // 4, lane % 4
    left, right, total = (np.zeros((len(a) // WARP, *size)) for size in ((8, 4), (4, 8), (8, 8)))
    left[:, row, column] = numbers(a, "f64").reshape(-1, WARP)
    right[:, column, row] = numbers(b, "f64").reshape(-1, WARP)
    for e in (0, 1):
        total[:, row, 2 * column + e] = numbers(c[e], "f64").reshape(-1, WARP)
    for k in range(4):
        total = exact_fma(left[:, :, k, None], right[:, k, None, :], total)
    return [bits_of(total[:, row, 2 * column + e].reshape(-1)) for e in (0, 1)]
