"""tree_map, tree_map2, tree_leaves -> flat functions, one for each type.  They go over every float in data of any type.

    tree_map f (Node (Leaf 1.0, Leaf 2.0))      call mapped.7 f t, which switches, recurses and rebuilds

Numbers narrower than f64 are converted before the function and after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.node import node
from dpl.source import Span

from dplc.flat import term as f
from dplc.flat.build import Bundle, Value, block_of, integer, pieces
from dplc.flat.types import elem_of, rank_of
from dplc.narrow import expect_type
from dplc.passes.lower.body import Body, Lowering
from dplc.passes.lower.dissect import (
    Argument,
    by_constructor,
    elements_at,
    flattened,
    innermost,
    other_constructor,
    same_constructor,
)  # fmt: skip

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


@node
class Mapping:
    """Applies a function (closure and type) to the floats of one operand, or to the floats at the same places of two.
    All other leaves of the result are those of the first operand."""

    body: Body
    fn: Value
    ty: t.Fn
    span: Span

    def over(self, ty: t.Ty, operands: Sequence[Value]) -> Value:
        up, b = self.body.up, self.body.b
        if not has_float(up, ty):
            return operands[0]
        match ty:
            case t.Con(name) if name in t.FLOATS:
                return self.apply([b.atom(x) for x in operands])
            case t.Con(name) if up.datas.unboxed(name):
                payload = up.datas.payload(ty, 0)
                return operands[0] if payload is None else self.over(payload, operands)
            case t.Tup(items):
                columns = zip(*[pieces(x) for x in operands])
                return Bundle(tuple([self.over(item, column) for item, column in zip(items, columns)]))
            case _:
                return self.call(ty, operands)

    def call(self, ty: t.Ty, operands: Sequence[Value]) -> Value:
        up, b = self.body.up, self.body.b
        flat = up.layout.flat(ty)
        fn = up.function(
            ("mapped", self.ty, ty, len(operands)),
            (up.layout.flat(self.ty), *[flat] * len(operands)),
            lambda inner, fn, *xs: Mapping(inner, fn, self.ty, self.span).rebuilt(ty, xs),
        )
        return b.explode(b.call(fn, (self.fn, *operands), flat, self.span))

    def rebuilt(self, ty: t.Ty, operands: Sequence[f.Atom]) -> f.Atom:
        match ty:
            case t.Arr():
                return self.array(ty, operands)
            case t.Con():
                return self.body.b.atom(self.data(ty, operands))
            case _:
                raise Bug(f"nothing to map over in {ty}")

    def apply(self, numbers: Sequence[f.Atom]) -> Value:
        b = self.body.b
        own = expect_type(f.Num, numbers[0].ty)
        result, ty = self.fn, self.ty
        for x in numbers:
            wide = x if own == f.F64 else b.op("cast", (x,), to="f64")
            arrow = expect_type(t.Fn, ty)
            result, ty = self.body.apply(result, arrow, wide, self.span), arrow.result
        return result if own == f.F64 else b.op("cast", (result,), to=own.name)

    def array(self, ty: t.Arr, arrays: Sequence[f.Atom]) -> f.Atom:
        b = self.body.b
        first, *others = arrays
        for other in others:
            b.effect("same_shape", (other, first), self.span, what="the two values do not have one form")
        rows = [flattened(b, a)[0] for a in arrays]
        _, count = flattened(b, first)
        index = b.var("i", f.I64)
        with b.inside() as binds:
            element = b.atom(self.over(innermost(self.body, ty), elements_at(b, index, *rows)))
        built = f.Build(index, count, block_of(binds, (element,)), self.span)
        result = b.one(built, f.Arr(elem_of(first.ty), 1), "mapped")
        if rank_of(first.ty) == 1:
            return result
        return b.op("reshape", (result, *[b.op("dim", (first,), k=k) for k in range(rank_of(first.ty))]), self.span)

    def data(self, ty: t.Con, operands: Sequence[f.Atom]) -> Value:
        def arm(tag: int, argument: Argument) -> Value:
            def rebuilt(*others: Value | None) -> Value:
                if argument is None:
                    return self.body.construct(ty, tag, None)
                payload, first = argument
                return self.body.construct(ty, tag, self.over(payload, [first, *[x for x in others if x is not None]]))

            if len(operands) == 1:
                return rebuilt()
            differ = other_constructor(self.body, self.body.up.layout.flat(ty), self.span)
            return same_constructor(self.body, operands[1], tag, rebuilt, differ)

        return by_constructor(self.body, ty, operands[0], arm)


# ---- leaves ---------------------------------------------------------------------------------------------------------


def leaves(body: Body, ty: t.Ty, value: Value) -> Value:
    """All floats as one array: they are counted first, then stored one after the other."""
    count = counted(body, ty, value)
    empty = body.b.op("fill", (count, f.Const(0.0, f.F64)))
    return stored(body, ty, value, empty, integer(0))[0]


def counted(body: Body, ty: t.Ty, value: Value) -> f.Atom:
    """The number of floats in a value."""
    up, b = body.up, body.b
    if not has_float(up, ty):
        return integer(0)
    match ty:
        case t.Con(name) if name in t.FLOATS:
            return integer(1)
        case t.Con(name) if up.datas.unboxed(name):
            payload = up.datas.payload(ty, 0)
            return integer(0) if payload is None else counted(body, payload, value)
        case t.Tup(items):
            total: f.Atom = integer(0)
            for item, part in zip(items, pieces(value)):
                total = b.op("add", (total, counted(body, item, part)))
            return total
        case t.Arr() if f.is_float(elem_of(up.layout.flat(ty))):
            return flattened(b, value)[1]
        case t.Arr():
            fn = up.function(("counted", ty), (up.layout.flat(ty),), lambda inner, x: count_array(inner, ty, x))
        case t.Con():
            fn = up.function(("counted", ty), (up.layout.flat(ty),), lambda inner, x: count_data(inner, ty, x))
        case _:
            raise Bug(f"no floats in {ty}")
    return b.call(fn, (value,), f.I64)


def count_array(body: Body, ty: t.Arr, x: f.Atom) -> f.Atom:
    b = body.b
    row, length = flattened(b, x)
    index, total = b.var("i", f.I64), b.var("total", f.I64)
    with b.inside() as binds:
        here = counted(body, innermost(body, ty), b.explode(b.op("index", (row, index))))
        step = b.op("add", (total, here))
    return b.one(f.For(index, length, (total,), (integer(0),), block_of(binds, (step,))), f.I64, "total")


def count_data(body: Body, ty: t.Con, x: f.Atom) -> f.Atom:
    return body.b.atom(
        by_constructor(body, ty, x, lambda _, argument: integer(0) if argument is None else counted(body, *argument))
    )


def stored(body: Body, ty: t.Ty, value: Value, into: Value, at: Value) -> tuple[Value, ...]:
    """Writes the floats of `value` into an array from index `at` on.  Returns the array and the next index."""
    up, b = body.up, body.b
    if not has_float(up, ty):
        return into, at
    match ty:
        case t.Con(name) if name in t.FLOATS:
            x = value if name == "f64" else b.op("cast", (value,), to="f64")
            return b.op("update", (into, x, at)), b.op("add", (at, integer(1)))
        case t.Con(name) if up.datas.unboxed(name):
            payload = up.datas.payload(ty, 0)
            return (into, at) if payload is None else stored(body, payload, value, into, at)
        case t.Tup(items):
            for item, part in zip(items, pieces(value)):
                into, at = stored(body, item, part, into, at)
            return into, at
        case _:
            return call_stored(body, ty, value, into, at)


def call_stored(body: Body, ty: t.Ty, value: Value, into: Value, at: Value) -> tuple[Value, ...]:
    up, b = body.up, body.b
    fn = up.function(
        ("stored", ty),
        (up.layout.flat(ty), FLOATS, f.I64),
        lambda inner, x, a, i: inner.b.atom(store_inside(inner, ty, x, a, i)),
    )
    return pieces(b.explode(b.call(fn, (value, into, at), f.Tup((FLOATS, f.I64)))))


def store_inside(body: Body, ty: t.Ty, x: f.Atom, into: f.Atom, at: f.Atom) -> Value:
    match ty:
        case t.Arr():
            return store_array(body, ty, x, into, at)
        case t.Con():
            return by_constructor(
                body,
                ty,
                x,
                lambda _, argument: Bundle((into, at) if argument is None else stored(body, *argument, into, at)),
            )
        case _:
            raise Bug(f"no floats in {ty}")


def store_array(body: Body, ty: t.Arr, x: f.Atom, into: f.Atom, at: f.Atom) -> Value:
    b = body.b
    row, length = flattened(b, x)
    index, array, place = b.var("i", f.I64), b.var("a", FLOATS), b.var("at", f.I64)
    with b.inside() as binds:
        step = b.atoms(stored(body, innermost(body, ty), b.explode(b.op("index", (row, index))), array, place))
    loop = f.For(index, length, (array, place), (into, at), block_of(binds, step))
    return Bundle(tuple(b.bind(loop, (FLOATS, f.I64), "stored")))
