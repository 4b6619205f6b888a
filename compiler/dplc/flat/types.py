"""The rank and element type of types."""

from __future__ import annotations

from dplc.flat.term import Arr, Const, Num, Tup, Type, is_float


def rank_of(ty: Type) -> int:
    return ty.rank if isinstance(ty, Arr) else 0


def elem_of(ty: Type) -> Type:
    return ty.elem if isinstance(ty, Arr) else ty


def of_rank(elem: Type, rank: int) -> Type:
    """`rank`-dimensional arrays of `elem` (which may be an array itself)."""
    return Arr(elem_of(elem), rank_of(elem) + rank) if rank else elem


def is_unit(ty: Type) -> bool:
    return ty == Tup(())


def nothing(ty: Type) -> Const:
    """Some value of a type, zero or null."""
    match ty:
        case Tup(items):
            return Const(tuple([nothing(item).value for item in items]), ty)
        case Num(name):
            return Const(False if name == "bool" else 0.0 if is_float(ty) else 0, ty)
        case _:
            return Const(None, ty)
