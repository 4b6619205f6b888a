"""value, type -> text: where the numbers and booleans of a value are, line by line, in their order.

    { w = [[1.0, 2.0]]; b = Some 3 }      (w / f64 1 2 / ) / (b / (Some / i64 / ) / )

* `(NAME` begins a part, `)` ends it.  Parts are fields, constructors, and the items of tuples, lists and arrays, which
  have their indices as names.
* Other lines are tensors: a type and its sizes.  An array of numbers, nested or not, is one tensor.

Native code must write the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.instance import is_type
from dpl.eval.values.scalar import FIT
from dpl.eval.values.show import rows
from dpl.eval.values.value import Array, Value, list_items

NUMBERS = frozenset((*FIT, "bool"))


def layout(datas: DataTypes, value: Value, ty: t.Ty) -> str:
    """The layout of a value of this type.  Values that nest deeply take no stack."""
    out: list[str] = []
    todo: list = [(value, ty)]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
        else:
            todo.extend(reversed(list(_parts(datas, *item))))
    return "".join(out)


def _parts(datas: DataTypes, value: Value, ty: t.Ty) -> Iterator:
    """A value as lines and smaller values with their types."""
    match ty:
        case t.Con("string"):
            return
        case t.Con(name) if name in NUMBERS:
            yield f"{name}\n"
        case t.Con("list", (elem,)) if is_type(elem):
            yield from _numbered((x, elem) for x in list_items(value))
        case t.Con():
            yield from _data(datas, value, ty)
        case t.Tup(items):
            yield from _numbered(zip(value, items, strict=True))
        case t.Arr(elem):
            yield from _array(value, elem)
        case _:
            raise Bug(f"no layout of {ty}")


def _numbered(items: Iterable[tuple[Value, t.Ty]]) -> Iterator:
    for i, item in enumerate(items):
        yield from (f"({i}\n", item, ")\n")


def _data(datas: DataTypes, value: Value, ty: t.Con) -> Iterator:
    data, argument = datas.data(ty), datas.argument(ty, value.tag)
    if data.fields:
        for name, content, its in datas.fields(ty, value):
            yield from (f"({name}\n", (content, its), ")\n")
    elif argument is not None:
        yield from (f"({data.cases[value.tag][0].rpartition('.')[2]}\n", (value.arg, argument), ")\n")


def _array(value: Array, elem: t.Ty) -> Iterator:
    inner = elem
    while isinstance(inner, t.Arr):
        inner = inner.elem
    if isinstance(inner, t.Con) and inner.name in NUMBERS:
        yield f"{inner.name} {' '.join(map(str, value.shape))}\n"
    else:
        yield from _numbered((row, elem) for row in rows(value))
