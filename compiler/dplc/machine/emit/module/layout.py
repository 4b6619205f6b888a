"""Layout of values: types of flat -> registers and memory.

A value is a list of LLVM scalars, its *leaves*:

    Num            [v]                              bool is i1 in registers, i8 in memory
    Arr of rank k  [owner, data, d0 ... d(k-1)]     row-major elements at `data`
    Str            [owner, data, bytes]             UTF-8, without a NUL at the end
    Data, Ref      [cell]
    Tup            the leaves of its items          unit has none

LLVM aggregates occur only as the results of functions that return several leaves.

A heap block begins with its owners, an i64:

    array, string  then i64 room, in bytes from `@rt.data(owner)` on (if elements hold owners: exactly their bytes);
                   `owner` points to the header, `data` anywhere inside, so that rows, slices and reshapes are views;
                   elements are structs of their leaves, naturally aligned
    constructor    its last 16 bits are the tag, 0 if it is the only one with a payload; then the leaves of the payload
                   as a struct
    reference      then the leaves of the content as a struct

A null owner owns nothing; constant arrays have one.  Constant constructors have a count that never reaches 0
(`constants.py`).  All leaves of a null array are zero (an *empty* array has `data` that is not null); a null Data is a
null pointer.  A constructor without payload is the odd pointer 2 * tag + 1.
"""

from __future__ import annotations

from itertools import accumulate, chain

from dpl.diagnostics import Bug
from dpl.node import node

from dplc.flat import term as f
from dplc.machine.llvm.types import SCALARS, SIZES, memory_type

HEADER = 8  # of constructors and references, which are cells
ARRAY_HEADER = 16
TAG_BITS = 16
TAG = 64 - TAG_BITS  # the first bit of the tag in a header
NUMBERS = {name: (scalar,) for name, scalar in SCALARS.items()}
ALIGN_FROM = 1024  # smaller arrays are freed by the size in their header (rt/memory.rt)


def leaves(ty: f.Type) -> tuple[str, ...]:
    """The LLVM types of the leaves of a value, in registers."""
    if isinstance(ty, f.Num):
        return NUMBERS[ty.name]
    match ty:
        case f.Str():
            return ("ptr", "ptr", "i64")
        case f.Arr(_, rank):
            return ("ptr", "ptr", *("i64",) * rank)
        case f.Data() | f.Ref():
            return ("ptr",)
        case f.Tup():
            return spread(ty).leaves
        case f.Res():
            raise Bug(f"no layout for {ty}")


@node
class Spread:
    """The leaves of a tuple; those of item k begin at `starts[k]`."""

    leaves: tuple[str, ...]
    starts: tuple[int, ...]


SPREADS: dict[int, tuple[f.Tup, Spread]] = {}  # by identity: to hash a type would take as long


def spread(tup: f.Tup) -> Spread:
    """The layout of a tuple in registers, remembered until the program is written."""
    known = SPREADS.get(id(tup))
    if known is None:
        parts = [leaves(item) for item in tup.items]
        made = Spread(tuple(chain.from_iterable(parts)), tuple(accumulate(map(len, parts), initial=0)))
        known = SPREADS[id(tup)] = (tup, made)  # which keeps the tuple alive
    return known[1]


def forget() -> None:
    """Ends the life of what is remembered: types of a program that has been written."""
    SPREADS.clear()


@node
class Struct:
    """Leaves in memory: their byte offsets, and the size of the whole, a multiple of its alignment."""

    leaves: tuple[str, ...]
    offsets: tuple[int, ...]
    size: int
    align: int


def struct(ty: f.Type) -> Struct:
    """The layout of a value in memory, as the element of an array or behind a header."""
    parts, offsets, end, align = leaves(ty), [], 0, 1
    for leaf in parts:
        size = SIZES[memory_type(leaf)]
        end = -(-end // size) * size
        offsets.append(end)
        end += size
        align = max(align, size)
    return Struct(parts, tuple(offsets), -(-end // align) * align, align)


def counted(ty: f.Type) -> bool:
    """True if a value holds pointers to reference-counted blocks."""
    match ty:
        case f.Tup(items):
            return any(counted(item) for item in items)
        case f.Num():
            return False
        case _:
            return True


def has_nullary(decl: f.DataDecl) -> bool:
    """True if a constructor of the type has no argument."""
    return any(payload is None for payload in decl.payloads)


def boxed(decl: f.DataDecl) -> list[tuple[int, f.Type]]:
    """The constructors that are cells: their tags and payloads."""
    return [(tag, payload) for tag, payload in enumerate(decl.payloads) if payload is not None]


def header(decl: f.DataDecl, tag: int, owners: int = 1) -> int:
    """The header of a constructor with so many owners."""
    if len(boxed(decl)) == 1:
        return owners
    if tag >> TAG_BITS:
        raise Bug(f"{decl.name} has more constructors than a header can tell")
    return owners | tag << TAG
