"""tree_map, tree_map2, tree_leaves -> flat functions, one for each type: over every float of any data.

    tree_map f (Node (Leaf 1.0, Leaf 2.0))      call mapped.7 f t, which switches, recurses and rebuilds

Numbers narrower than f64 are converted before the function and after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpl.core import ty as t
from dpl.source import Span
from dplc.flat import term as f
from dplc.flat.build import Bundle, Value, integer, pieces
from dplc.flat.types import rank_of
from dplc.passes import generic

if TYPE_CHECKING:
    from dplc.passes.lower import Body, Lowering

FLOATS = f.Arr(f.F64, 1)


def has_float(up: Lowering, ty: t.Ty, seen: frozenset = frozenset()) -> bool:
    match ty:
        case t.Con(name) if name in up.datas.datas:
            inner = [up.datas.payload(ty, tag) for tag in range(len(up.datas.datas[name].cases))]
            return ty not in seen and any(has_float(up, p, seen | {ty}) for p in inner if p is not None)
        case t.Con(name):
            return name in t.FLOATS
        case t.Tup(items):
            return any(has_float(up, i, seen) for i in items)
        case t.Arr(elem):
            return has_float(up, elem, seen)
        case _:
            return False


# ---- maps -----------------------------------------------------------------------------------------------------------


def mapped(body: Body, fn_ty: t.Fn, fn: Value, ty: t.Ty, operands: list[Value], span: Span) -> Value:
    """The function over the floats of one operand, or at the same places of two; other leaves are the first's."""
    up, b = body.up, body.b
    if not has_float(up, ty):
        return operands[0]
    match ty:
        case t.Con(name) if name in t.FLOATS:
            return apply_at(body, fn_ty, fn, [x for x in operands], span)
        case t.Con(name) if up.datas.unboxed(name):
            return mapped(body, fn_ty, fn, up.datas.payload(ty, 0), operands, span)
        case t.Tup(items):
            parts = [[pieces(x)[i] for x in operands] for i in range(len(items))]
            return Bundle(tuple([mapped(body, fn_ty, fn, item, p, span) for item, p in zip(items, parts, strict=True)]))
    flat = up.layout.flat(ty)
    make = map_array if isinstance(ty, t.Arr) else map_data
    name = up.function(("mapped", fn_ty, ty, len(operands)), (up.layout.flat(fn_ty), *[flat] * len(operands)),
                       lambda inner, fn, *xs: inner.b.atom(make(inner, fn_ty, fn, ty, list(xs), span)))
    return b.explode(b.call(name, (b.atom(fn), *operands), flat, span))


def apply_at(body: Body, fn_ty: t.Fn, fn: Value, numbers: list[f.Atom], span: Span) -> Value:
    b = body.b
    own, ty = numbers[0].ty, fn_ty
    result = fn
    for x in numbers:
        result = body.apply(result, ty, x if own == f.F64 else b.op("cast", (x,), to="f64"), span)
        ty = ty.result
    return result if own == f.F64 else b.op("cast", (result,), to=own.name)


def map_array(body: Body, fn_ty: t.Fn, fn: Value, ty: t.Arr, arrays: list[f.Atom], span: Span) -> Value:
    b = body.b
    x = arrays[0]
    for other in arrays[1:]:
        b.effect("same_shape", (x, other), span)
    rows = [generic.flattened(b, a)[0] for a in arrays]
    _, count = generic.flattened(b, x)
    index = b.var("i", f.I64)
    with b.inside() as binds:
        element = b.atom(mapped(body, fn_ty, fn, generic.innermost(ty), generic.elements_at(b, index, *rows), span))
    result = b.one(f.Build(index, count, f.Block(tuple(binds), (element,)), span), f.Arr(x.ty.elem, 1), "mapped")
    if rank_of(x.ty) == 1:
        return result
    return b.op("reshape", (result, *[b.op("dim", (x,), k=k) for k in range(rank_of(x.ty))]), span)


def map_data(body: Body, fn_ty: t.Fn, fn: Value, ty: t.Con, operands: list[f.Atom], span: Span) -> Value:
    flat = body.up.layout.flat(ty)

    def arm(tag: int, payload: t.Ty | None, arg: Value | None) -> Value:
        if len(operands) == 1:
            return rebuilt(tag, payload, [arg])
        return same_constructor(tag, payload, arg)

    def rebuilt(tag: int, payload: t.Ty | None, args: list[Value]) -> Value:
        return body.construct(ty, tag, None if payload is None else mapped(body, fn_ty, fn, payload, args, span))

    def same_constructor(tag: int, payload: t.Ty | None, arg: Value | None) -> Value:
        declared = body.up.layout.declared[flat.name].payloads
        var = None if payload is None else body.b.var("of", declared[tag])
        thunks = [lambda: rebuilt(tag, payload, [arg, None if var is None else body.b.explode(var)])]
        if len(declared) > 1:
            thunks.append(lambda: body.fail("the two have different constructors", flat, span, "R0503"))
        return body.join(thunks, lambda blocks: f.Switch(operands[1], (f.Case(tag, var, blocks[0]),), *blocks[1:] or [None]))

    return generic.by_constructor(body, ty, operands[0], arm)


# ---- leaves ---------------------------------------------------------------------------------------------------------


def leaves(body: Body, ty: t.Ty, value: Value) -> Value:
    """All floats, counted first, then stored one after the other."""
    b = body.b
    count = counted(body, ty, value)
    empty = b.op("fill", (count, f.Const(0.0, f.F64)))
    return stored(body, ty, value, empty, integer(0))[0]


def counted(body: Body, ty: t.Ty, value: Value) -> f.Atom:
    """How many floats."""
    up, b = body.up, body.b
    if not has_float(up, ty):
        return integer(0)
    match ty:
        case t.Con(name) if name in t.FLOATS:
            return integer(1)
        case t.Con(name) if up.datas.unboxed(name):
            return counted(body, up.datas.payload(ty, 0), value)
        case t.Tup(items):
            total: f.Atom = integer(0)
            for item, part in zip(items, pieces(value), strict=True):
                total = b.op("add", (total, counted(body, item, part)))
            return total
        case t.Arr() if isinstance(value.ty.elem, f.Num):
            return generic.flattened(b, value)[1]
    fn = up.function(("counted", ty), (up.layout.flat(ty),),
                     lambda inner, x: count_array(inner, ty, x) if isinstance(ty, t.Arr) else count_data(inner, ty, x))
    return b.call(fn, (value,), f.I64)


def count_array(body: Body, ty: t.Arr, x: f.Atom) -> f.Atom:
    b = body.b
    row, length = generic.flattened(b, x)
    index, total = b.var("i", f.I64), b.var("total", f.I64)
    with b.inside() as binds:
        here = counted(body, generic.innermost(ty), b.explode(b.op("index", (row, index))))
        step = b.op("add", (total, here))
    return b.one(f.For(index, length, (total,), (integer(0),), f.Block(tuple(binds), (step,))), f.I64, "total")


def count_data(body: Body, ty: t.Con, x: f.Atom) -> f.Atom:
    return body.b.atom(generic.by_constructor(
        body, ty, x, lambda _, payload, arg: integer(0) if payload is None else counted(body, payload, arg)))


def stored(body: Body, ty: t.Ty, value: Value, into: f.Atom, at: f.Atom) -> tuple[f.Atom, f.Atom]:
    """The array with the floats of `value` written from `at` on, and where the next one goes."""
    up, b = body.up, body.b
    if not has_float(up, ty):
        return into, at
    match ty:
        case t.Con(name) if name in t.FLOATS:
            x = value if name == "f64" else b.op("cast", (value,), to="f64")
            return b.op("update", (into, x, at)), b.op("add", (at, integer(1)))
        case t.Con(name) if up.datas.unboxed(name):
            return stored(body, up.datas.payload(ty, 0), value, into, at)
        case t.Tup(items):
            for item, part in zip(items, pieces(value), strict=True):
                into, at = stored(body, item, part, into, at)
            return into, at
    make = store_array if isinstance(ty, t.Arr) else store_data
    result = f.Tup((FLOATS, f.I64))
    fn = up.function(("stored", ty), (up.layout.flat(ty), FLOATS, f.I64),
                     lambda inner, x, a, i: inner.b.atom(make(inner, ty, x, a, i)))
    pair = b.explode(b.call(fn, (value, into, at), result))
    return pieces(pair)[0], pieces(pair)[1]


def store_array(body: Body, ty: t.Arr, x: f.Atom, into: f.Atom, at: f.Atom) -> Value:
    b = body.b
    row, length = generic.flattened(b, x)
    index, array, place = b.var("i", f.I64), b.var("a", FLOATS), b.var("at", f.I64)
    with b.inside() as binds:
        step = stored(body, generic.innermost(ty), b.explode(b.op("index", (row, index))), array, place)
    loop = f.For(index, length, (array, place), (into, at), f.Block(tuple(binds), step))
    return Bundle(tuple(b.bind(loop, (FLOATS, f.I64), "stored")))


def store_data(body: Body, ty: t.Con, x: f.Atom, into: f.Atom, at: f.Atom) -> Value:
    return generic.by_constructor(
        body, ty, x, lambda _, payload, arg: Bundle((into, at) if payload is None else stored(body, payload, arg, into, at)))
