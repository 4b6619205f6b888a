"""tree_layout -> flat functions, one for each type, that write lines to the output buffer.

    tree_layout { w = [[1.0]] }      buf_str "(w\\n"; buf_str "f64"; buf_str " "; buf_num 1; ...; buf_take

The text is specified in `eval/values/layout.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import ty as t
from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat.build import UNIT_ATOM
from dplc.flat.types import elem_of, rank_of
from dplc.flat.values import UNIT, Value, block_of, pieces
from dplc.narrow import expect_type
from dplc.passes.lower.body import Body
from dplc.passes.lower.dissect import Argument, by_constructor, each_item, is_scalar


def layout(body: Body, ty: t.Ty, value: Value) -> Value:
    """Write the lines of a value."""
    match ty:
        case t.Con("string"):
            return UNIT
        case t.Con(name) if is_scalar(body, ty):
            return text(body, f"{name}\n")
        case t.Tup(items):
            for i, (item, part) in enumerate(zip(items, pieces(value))):
                named(body, str(i), lambda item=item, part=part: layout(body, item, part))
            return UNIT
        case _:
            flat = body.up.layout.flat(ty)
            fn = body.up.function(("layout", ty), (flat,), lambda inner, x: of_one(inner, ty, x))
            body.b.call(fn, (value,), f.UNIT)
            return UNIT


def text(body: Body, s: str) -> Value:
    body.b.effect("buf_str", (f.Const(s, f.STR),))
    return UNIT


def named(body: Body, name: str, part: Callable[[], Value]) -> None:
    text(body, f"({name}\n")
    part()
    text(body, ")\n")


def numbered(body: Body, index: f.Atom, ty: t.Ty, value: Value) -> None:
    text(body, "(")
    body.b.effect("buf_num", (index,))
    text(body, "\n")
    layout(body, ty, value)
    text(body, ")\n")


def of_one(body: Body, ty: t.Ty, x: f.Atom) -> f.Atom:
    match ty:
        case t.Arr(elem):
            of_array(body, elem, x)
        case t.Con("list"):
            each_item(body, ty, x, lambda index, _, elem, head: numbered(body, index, elem, head))
        case t.Con():
            by_constructor(body, ty, x, lambda tag, argument: of_case(body, ty, tag, argument))
        case _:
            raise Bug(f"no layout of {ty}")
    return UNIT_ATOM


def of_case(body: Body, ty: t.Con, tag: int, argument: Argument) -> Value:
    if argument is None:
        return UNIT
    declared = body.up.datas.datas[ty.name]
    payload, value = argument
    if not declared.fields:
        named(body, declared.cases[tag][0].rpartition(".")[2], lambda: layout(body, payload, value))
        return UNIT
    lone = body.up.datas.lone_field(ty)
    parts = [argument] if lone else list(zip(expect_type(t.Tup, payload).items, pieces(value)))
    for name, part in zip(declared.fields, parts):
        named(body, name, lambda part=part: layout(body, *part))
    return UNIT


def of_array(body: Body, elem: t.Ty, x: f.Atom) -> None:
    inner = elem
    while isinstance(inner, t.Arr):
        inner = inner.elem
    if is_scalar(body, inner):
        tensor(body, expect_type(f.Num, elem_of(x.ty)).name, x)
        return
    b = body.b
    index = b.var("i", f.I64)
    with b.inside() as binds:
        numbered(body, index, elem, b.explode(b.op("index", (x, index))))
    b.bind(f.For(index, b.op("dim", (x,), k=0), (), (), block_of(binds, ())), ())


def tensor(body: Body, name: str, x: f.Atom) -> None:
    text(body, name)
    for k in range(rank_of(x.ty)):
        text(body, " ")
        body.b.effect("buf_num", (body.b.op("dim", (x,), k=k),))
    text(body, "\n")
