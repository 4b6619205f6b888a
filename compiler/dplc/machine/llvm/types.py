"""LLVM's types of scalars, in registers and in memory."""

from __future__ import annotations

SCALARS = {"bool": "i1", "f16": "half", "f32": "float", "f64": "double"} | {
    f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)
}
SIZES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8, "ptr": 8}


def memory_type(leaf: str) -> str:
    """The type in memory: a boolean is a byte there."""
    return "i8" if leaf == "i1" else leaf
