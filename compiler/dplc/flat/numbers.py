"""Python numbers converted to a scalar type."""

from __future__ import annotations

import math
import struct
from ctypes import c_float
from typing import Any

from dplc.flat import term as f
from dplc.flat.types import elem_of
from dplc.narrow import expect_type

CODES = {
    "f16": "=e", "u16": "=H", "i16": "=h", "f32": "=f", "u32": "=I", "i32": "=i", "f64": "=d", "u64": "=Q", "i64": "=q",
}  # fmt: skip


def half(x: float) -> float:
    """The nearest f16."""
    try:
        return struct.unpack("e", struct.pack("e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def wrap(x: Any, ty: f.Type) -> Any:
    """A Python number converted to type `ty`."""
    match elem_of(ty):
        case f.Num("bool"):
            return bool(x)
        case f.Num("f64"):
            return float(x)
        case f.Num("f32"):
            return c_float(x).value
        case f.Num("f16"):
            return half(x)
        case f.Num(name):
            bits = int(name[1:])
            x = int(x) & ((1 << bits) - 1)
            return x - (1 << bits) if name[0] == "i" and x >> (bits - 1) else x
        case _:
            return x


def same_bits(x: Any, source: f.Type, target: f.Type) -> Any:
    """The number of another type that has the same bits."""
    given, wanted = (CODES[expect_type(f.Num, elem_of(ty)).name] for ty in (source, target))
    return struct.unpack(wanted, struct.pack(given, x))[0]
