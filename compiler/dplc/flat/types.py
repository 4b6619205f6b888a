"""The rank and element type of types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dplc.flat.term import Arr, Const, Data, DataDecl, Num, Ref, Tup, Type, is_float


def rank_of(ty: Type) -> int:
    """The number of dimensions; 0 for what is no array."""
    return ty.rank if isinstance(ty, Arr) else 0


def elem_of(ty: Type) -> Type:
    """The element type of an array; any other type is its own."""
    return ty.elem if isinstance(ty, Arr) else ty


def of_rank(elem: Type, rank: int) -> Type:
    """`rank`-dimensional arrays of `elem` (which may be an array itself)."""
    return Arr(elem_of(elem), rank_of(elem) + rank) if rank else elem


def width(ty: Type) -> int:
    """The number of leaves of a type, laid out flat."""
    return sum(map(width, ty.items)) if isinstance(ty, Tup) else 1


def is_numbers(ty: Type) -> bool:
    """True for numbers, and for tuples of them, such as what is kept for the way back."""
    return isinstance(ty, Num) or (isinstance(ty, Tup) and all(map(is_numbers, ty.items)))


def nothing(ty: Type) -> Const:
    """Some value of a type, zero or null."""
    match ty:
        case Tup(items):
            return Const(tuple([nothing(item).value for item in items]), ty)
        case Num(name):
            return Const(False if name == "bool" else 0.0 if is_float(ty) else 0, ty)
        case _:
            return Const(None, ty)


def datas_reached(types: Iterable[Type], datas: Mapping[str, DataDecl]) -> set[str]:
    """The data types that values of some types can hold."""
    found: set[str] = set()
    todo = list(types)
    while todo:
        match todo.pop():
            case Data(name) if name not in found:
                found.add(name)
                todo += [payload for payload in datas[name].payloads if payload is not None]
            case Tup(items):
                todo += items
            case Arr(elem) | Ref(elem):
                todo.append(elem)
            case _:
                pass
    return found
