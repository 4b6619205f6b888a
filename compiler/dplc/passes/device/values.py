"""Which values threads of a device can have, and which of them a team shares."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.types import elem_of, is_numbers


def is_local(ty: f.Type) -> bool:
    """True for values that a thread can have."""
    match ty:
        case f.Tup(items):
            return all(map(is_local, items))
        case f.Arr(elem, _):
            return is_local(elem)
        case _:
            return isinstance(ty, f.Num | f.Data)


def is_shared(ty: f.Type) -> bool:
    """True for arrays of numbers, and tuples and arrays with such arrays: a team has their numbers once."""
    match ty:
        case f.Tup(items):
            return any(map(is_shared, items))
        case f.Arr(elem):
            return is_numbers(elem_of(ty)) or is_shared(elem)
        case _:
            return False
