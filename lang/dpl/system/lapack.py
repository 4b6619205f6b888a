"""Where the routines of LAPACK are: in the library that NumPy brings along, which both engines call.

NumPy itself is not imported.  `DPL_LAPACK=off` does without: the library's own algorithms take over.
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
# how a library may name a routine, and the bytes of its integers
NAMES = (("scipy_{}_64_", 8), ("{}_64_", 8), ("{}$NEWLAPACK$ILP64", 8), ("scipy_{}_", 4), ("{}_", 4))
THREADS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads")


@node
class Lapack:
    """The addresses of ROUTINES, and the bytes of their integers."""

    width: int
    addresses: tuple[int, ...]


@cache
def find() -> Lapack | None:
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
    """NumPy's module of linear algebra: what it is linked with is found through it."""
    spec = find_spec("numpy")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder, "linalg").glob("_umath_linalg*")):
            try:
                yield ctypes.CDLL(str(path))
            except OSError:
                continue


def address(library: ctypes.CDLL, name: str) -> int:
    """0 where it is not."""
    try:
        return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    except AttributeError:
        return 0


def alone(library: ctypes.CDLL) -> None:
    """One thread: more of them wait for each other longer than they compute."""
    for name in THREADS:
        if place := address(library, name):
            ctypes.CFUNCTYPE(None, ctypes.c_int)(place)(1)
