"""The parts of a value, for faces that open values step by step."""

from __future__ import annotations

from dpl.core import ty as t
from dpl.eval.values.arrays import rows
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.instance import is_type
from dpl.eval.values.scalar import FIT
from dpl.eval.values.value import Array, Cell, Con, Value, list_items
from dpl.node import node

MOST = 1000  # parts of one value that are listed


@node
class Part:
    name: str
    value: Value
    ty: t.Ty


def has_parts(value: Value, ty: t.Ty) -> bool:
    """True if a value can be opened: a tuple, an array with elements, a reference, a constructor with an argument."""
    match ty:
        case t.Tup(items):
            return bool(items)
        case t.Arr():
            return isinstance(value, Array) and bool(value.shape[0])
        case t.Con(name):
            return name == "ref" or (name not in FIT and isinstance(value, Con) and value.arg is not None)
        case _:
            return False


def parts(value: Value, ty: t.Ty, datas: DataTypes) -> list[Part]:
    """The elements, fields or argument of a value."""
    match ty:
        case t.Tup(items):
            return [Part(str(i), v, ty) for i, (v, ty) in enumerate(zip(value, items, strict=True))]
        case t.Arr(elem):
            return [Part(f"[{i}]", v, elem) for i, v in enumerate(rows(value)[:MOST])]
        case t.Con("list", (elem,)) if is_type(elem):
            return [Part(f"[{i}]", v, elem) for i, v in zip(range(MOST), list_items(value), strict=False)]
        case t.Con("ref", (content,)) if isinstance(value, Cell) and is_type(content):
            return [Part("!", value.content, content)]
        case t.Con() if isinstance(value, Con):
            if datas.data(ty).fields:
                return [Part(*field) for field in datas.fields(ty, value)]
            argument = datas.argument(ty, value.tag)
            return [] if argument is None else [Part(value.name.rpartition(".")[2], value.arg, argument)]
        case _:
            return []
