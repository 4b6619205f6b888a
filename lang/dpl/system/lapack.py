"""Finds the LAPACK routines in the library that NumPy ships; both engines call them.

NumPy itself is not imported.  `DPL_LAPACK=off` disables LAPACK: the library's own algorithms are used.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dpl.node import node

ROUTINES = ("dgetrf", "dpotrf", "dgeqrf", "dorgqr", "dsyevd", "dgesdd", "dtrsm")
# how a library may name a routine, and the size of its integers in bytes
NAMES = (("scipy_{}_64_", 8), ("{}_64_", 8), ("{}$NEWLAPACK$ILP64", 8), ("scipy_{}_", 4), ("{}_", 4))
THREADS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads")


@node
class Lapack:
    """The addresses of ROUTINES, and the size of their integers in bytes."""

    width: int
    addresses: tuple[int, ...]


@cache
def find() -> Lapack | None:
    """The routines' addresses and the width of their integers.  None if no library has all, or DPL_LAPACK=off."""
    if os.environ.get("DPL_LAPACK") == "off":
        return None
    for library in libraries():
        for name, width in NAMES:
            addresses = tuple(address(library, name.format(routine)) for routine in ROUTINES)
            if all(addresses):
                alone(library)
                return Lapack(width, addresses)
    return None


def libraries() -> Iterator[ctypes.CDLL]:
    """NumPy's linear algebra module; symbols of the libraries it is linked with are found through it."""
    spec = find_spec("numpy")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder, "linalg").glob("_umath_linalg*")):
            try:
                yield ctypes.CDLL(str(path))
            except OSError:
                continue


def address(library: ctypes.CDLL, name: str) -> int:
    """The address of a symbol; 0 if the library lacks it."""
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def alone(library: ctypes.CDLL) -> None:
    """Limit the library to one thread: several threads spend more time waiting for each other than computing."""
    for name in THREADS:
        if place := address(library, name):
            ctypes.CFUNCTYPE(None, ctypes.c_int)(place)(1)
