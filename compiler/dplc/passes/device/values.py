"""Which values threads of a device can have, and which of them hold arrays of numbers."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.types import elem_of
from dplc.passes.kernels.independence import is_numbers


def is_local(ty: f.Type) -> bool:
    """True for values that a thread can have."""
    match ty:
        case f.Tup(items):
            return all(map(is_local, items))
        case f.Arr(elem, _):
            return is_local(elem)
        case _:
            return isinstance(ty, f.Num | f.Data)


def has_numbers(ty: f.Type) -> bool:
    """True for arrays of numbers, and tuples and arrays with such arrays."""
    match ty:
        case f.Tup(items):
            return any(map(has_numbers, items))
        case f.Arr(elem):
            return is_numbers(elem_of(ty)) or has_numbers(elem)
        case _:
            return False
