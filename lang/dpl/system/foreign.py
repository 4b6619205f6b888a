"""C functions of scalars, found in the libraries that the process has loaded."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable

TYPES = {
    "f64": ctypes.c_double,
    "f32": ctypes.c_float,
    "bool": ctypes.c_bool,
    **{f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
}


def function(symbol: str, types: list[str]) -> Callable | None:
    """The C function `symbol` with these parameter types and, last, its result type; None if no library has it."""
    for library in (None, ctypes.util.find_library("m")):
        try:
            found = ctypes.CDLL(library)[symbol]
        except (AttributeError, OSError):
            continue
        found.argtypes = [TYPES[name] for name in types[:-1]]
        found.restype = TYPES.get(types[-1])  # None: no result
        return found
    return None
