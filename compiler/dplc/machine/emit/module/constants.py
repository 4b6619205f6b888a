"""Constants in the data section: values known at compile time, never allocated and never freed.

    Cons (1, Cons (2, Nil))      =>      @"constant 0" = {FOREVER, {2, Nil}}
                                         @"constant 1" = {FOREVER, {1, @"constant 0"}}

A leaf is constant if it is no register.  LLVM lays out structs as `layout.struct` does if pointers have 8 bytes.  Where
they have fewer, each pointer is followed by `[0 x i64]`, which aligns what comes next to 8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.machine.emit.module.layout import header, leaves
from dplc.machine.llvm.types import memory_type
from dplc.machine.llvm.writer import Values

FOREVER = 1 << 46  # owners of what is never freed: far from none, and from where the tag begins


def are_constant(values: Values) -> bool:
    """True if no part of a value is computed at run time: names of registers begin with `%`."""
    return not any(value.startswith("%") for value in values)


def cell(decl: f.DataDecl, tag: int, payload: f.Type, values: Values) -> tuple[str, str]:
    """A constructor with its header: the LLVM type, and the value."""
    kind, text = fields(payload, values)
    return f"{{ i64, {kind} }}", f"{{ i64 {header(decl, tag, FOREVER)}, {kind} {text} }}"


def elements(elem: f.Type, items: Sequence[Values]) -> list[str]:
    """The elements of an array, with their types."""
    return [" ".join(fields(elem, values)) for values in items]


def fields(ty: f.Type, values: Values) -> tuple[str, str]:
    """A value in memory: the LLVM type, and the value."""
    made = [field(leaf, value) for leaf, value in zip(leaves(ty), values, strict=True)]
    if len(made) == 1:
        return made[0]
    return f"{{ {', '.join(kind for kind, _ in made)} }}", f"{{ {', '.join(f'{kind} {text}' for kind, text in made)} }}"


def field(leaf: str, value: str) -> tuple[str, str]:
    if leaf == "ptr":
        return "{ ptr, [0 x i64] }", f"{{ ptr {value}, [0 x i64] zeroinitializer }}"
    return memory_type(leaf), {"true": "1", "false": "0"}.get(value, value)
