"""C types of exported functions: how the shape of a value looks to a C caller.

    float                      double x
    float[n, 3]                double *x, int64_t x_n
    string                     char *x, int64_t x_bytes
    { w : float[n]; b : int }  struct { double *w; int64_t w_n; int64_t b; }, by a pointer
    float * int                one after the other, x_0 and x_1

Each of these is a *member* of a parameter list or of a struct.  A result is written through pointers to its members.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.node import node

from dplc.interface import Array, Number, Record, Shape, Text, Tuple
from dplc.machine.llvm.types import SCALARS, SIZES, memory_type

C_NAMES = {
    "bool": "bool", "f16": "uint16_t", "f32": "float", "f64": "double",
    **{f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip


@node
class Member:
    """A declaration in C.  With `pointer` it is a pointer to `type`; a `struct` is one that the library's header
    declares."""

    name: str
    type: str
    pointer: bool = False
    struct: Record | None = None


def members(shape: Shape, name: str) -> Iterator[Member]:
    """The members of a C struct that hold a value of this shape: strings and arrays are a pointer and lengths."""
    match shape:
        case Number(number):
            yield Member(name, C_NAMES[number])
        case Text():
            yield Member(name, "char", True)
            yield Member(f"{name}_bytes", "int64_t")
        case Array(Number(number), _, labels):
            yield Member(name, C_NAMES[number], True)
            yield from (Member(f"{name}_{label}", "int64_t") for label in labels if label is not None)
        case Tuple(items):
            for i, item in enumerate(items):
                yield from members(item, f"{name}_{i}")
        case Record(record):
            yield Member(name, record, struct=shape)


def number_size(number: Number) -> int:
    """The bytes of a number in memory."""
    return SIZES[memory_type(SCALARS[number.name])]


def sizes(shape: Shape) -> Iterator[int]:
    """The size in bytes of each member, which is also its alignment; for a record, of the members of its fields."""
    match shape:
        case Number():
            yield number_size(shape)
        case Text():
            yield from (8, 8)
        case Array(_, _, labels):
            yield 8
            yield from (8 for label in labels if label is not None)
        case Tuple(items):
            for item in items:
                yield from sizes(item)
        case Record(_, fields):
            for _, part in fields:
                yield from sizes(part)


def alignment(shape: Shape) -> int:
    """The alignment in a C struct, which is that of the largest member."""
    return max(sizes(shape), default=1)


def end(shape: Shape, start: int) -> int:
    """The offset at which a shape ends in a struct, if it begins at `start`."""
    match shape:
        case Record(_, fields):
            align = alignment(shape)
            at = start = -(-start // align) * align
            for _, part in fields:
                at = end(part, at)
            return start + -(-(at - start) // align) * align
        case Tuple(items):
            for item in items:
                start = end(item, start)
            return start
        case _:
            for size in sizes(shape):
                start = -(-start // size) * size + size
            return start
