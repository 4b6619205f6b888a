"""LAPACK's factorizations for the interpreter: the same routines that native code calls.

The routines take all arguments by reference and matrices in column-major order.  Arrays here are row-major, so LAPACK
sees them transposed.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

from dpl.eval.values.value import Array
from dpl.system.lapack import ROUTINES as NAMES
from dpl.system.lapack import find

PER_COLUMN = 64  # numbers of workspace for each column, for the blocked routines
NAN = math.nan


def call(routine: str, *args) -> int:
    """Call a routine with texts, integers and buffers by reference.  Returns its `info`, 0 on success."""
    found = find()
    assert found is not None
    integer = ctypes.c_int64 if found.width == 8 else ctypes.c_int32
    info = integer(0)
    texts = [a for a in args if isinstance(a, bytes)]
    passed = [ctypes.byref(integer(a)) if isinstance(a, int) else a for a in args]
    tail = () if routine == "dtrsm" else (ctypes.byref(info),)
    address = found.addresses[NAMES.index(routine)]
    ctypes.CFUNCTYPE(None)(address)(*passed, *tail, *(ctypes.c_size_t(len(t)) for t in texts))
    return info.value


def numbers(data: Sequence[float]) -> ctypes.Array:
    return (ctypes.c_double * len(data))(*data)


def room(count: int) -> ctypes.Array:
    return (ctypes.c_double * max(1, count))()


def turned(data: Sequence[float] | ctypes.Array, rows: int, columns: int) -> list[float]:
    """A row-major matrix in column-major order."""
    return [data[i * columns + j] for j in range(columns) for i in range(rows)]


def is_finite(a: Array) -> bool:
    return all(map(math.isfinite, a.data))


def nans(*shape: int) -> Array:
    return Array(shape, [NAN] * math.prod(shape))


def lu(a: Array) -> tuple:
    n = a.shape[0]
    order = list(range(n))
    if not is_finite(a):
        return nans(n, n), Array((n,), order)
    columns, pivots = numbers(turned(a.data, n, n)), room(n)
    call("dgetrf", n, n, columns, n, pivots)
    found = find()
    assert found is not None
    width = ctypes.c_int64 if found.width == 8 else ctypes.c_int32
    for i, p in enumerate((width * n).from_buffer(pivots)):
        order[i], order[p - 1] = order[p - 1], order[i]
    return Array((n, n), turned(columns, n, n)), Array((n,), order)


def cholesky(a: Array) -> Array:
    n = a.shape[0]
    rows = numbers(a.data)
    good = is_finite(a) and call("dpotrf", b"U", n, rows, n) == 0
    lower = [(rows[i * n + j] if good else NAN) if j <= i else 0.0 for i in range(n) for j in range(n)]
    return Array((n, n), lower)


def qr(a: Array) -> tuple:
    n, m = a.shape
    if not is_finite(a):
        return nans(n, m), nans(m, m)
    columns, tau, size = numbers(turned(a.data, n, m)), room(m), PER_COLUMN * m
    call("dgeqrf", n, m, columns, n, tau, room(size), size)
    r = [columns[j * n + i] if i <= j else 0.0 for i in range(m) for j in range(m)]
    call("dorgqr", n, m, m, columns, n, tau, room(size), size)
    return Array((n, m), turned(columns, m, n)), Array((m, m), r)


def eigh(a: Array) -> tuple:
    n = a.shape[0]
    rows, values, size, integers = numbers(a.data), room(n), 1 + 6 * n + 2 * n * n, 3 + 5 * n
    if not (
        is_finite(a) and call("dsyevd", b"V", b"U", n, rows, n, values, room(size), size, room(integers), integers) == 0
    ):
        return nans(n), nans(n, n)
    return Array((n,), list(values)), Array((n, n), turned(rows, n, n))


def svd(a: Array) -> tuple:
    """LAPACK factors the transposed matrix into v, s and the transposed u; in column-major order that is u by rows."""
    n, m = a.shape
    u, s, columns, size = room(n * m), room(m), room(m * m), 4 * m * m + 7 * m + PER_COLUMN * (n + m)
    args = (b"S", m, n, numbers(a.data), m, s, columns, m, u, m, room(size), size, room(8 * m))
    if not (is_finite(a) and call("dgesdd", *args) == 0):
        return nans(n, m), nans(m), nans(m, m)
    return Array((n, m), list(u)), Array((m,), list(s)), Array((m, m), turned(columns, m, m))


def triangular(upper: bool, transposed: bool, ones: bool, t: Array, b: Array) -> Array:
    """Solve t x = b.  LAPACK sees the transposed equation, x t = b with the other triangle of t."""
    n, m = b.shape[0], math.prod(b.shape[1:])
    x = numbers(b.data)
    if n and m:
        flags = (b"R", b"L" if upper else b"U", b"T" if transposed else b"N", b"U" if ones else b"N")
        call("dtrsm", *flags, m, n, numbers([1.0]), numbers(t.data), n, x, m)
    return Array(b.shape, list(x))


ROUTINES = {
    "lapack_lu": lu, "lapack_cholesky": cholesky, "lapack_qr": qr, "lapack_eigh": eigh,
    "lapack_svd": svd, "lapack_triangular": triangular,
}  # fmt: skip
