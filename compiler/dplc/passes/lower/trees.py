"""tree_map, tree_map2, tree_leaves, tree_map_words, tree_words -> flat functions, one for each type.

They go over every float, or every number and boolean, in data of any type.  The leaves of a reference are those of its
content: programs never ask for them, but the checks of `passes/entry/finite.py` do.

    tree_map f (Node (Leaf 1.0, Leaf 2.0))      call mapped.7 f t, which switches, recurses and rebuilds

Floats narrower than f64 are converted before the function and after it, and so are all others than u64 for words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.node import node
from dpl.source import Span

from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.types import elem_of, rank_of
from dplc.flat.values import Bundle, Value, ValueBuilder, block_of, pieces
from dplc.narrow import a_type, expect_type
from dplc.passes.lower.body import Body, Lowering
from dplc.passes.lower.dissect import (
    MISFIT,
    Argument,
    by_constructor,
    elements_at,
    flattened,
    innermost,
    other_constructor,
    same_constructor,
)  # fmt: skip

U64 = f.Num("u64")


@node
class Leaves:
    """The leaves that are visited, by the names of their types, and the type that they are given to functions as."""

    kinds: frozenset[str]
    ty: f.Num

    def given(self, b: ValueBuilder, x: f.Atom) -> f.Atom:
        """A leaf as functions take it.  Floats as words are the bits of an f64."""
        if self.ty == f.F64 or not f.is_float(x.ty):
            return cast(b, x, self.ty)
        return b.op("bitcast", (cast(b, x, f.F64),), to="u64")

    def taken(self, b: ValueBuilder, x: f.Atom, own: f.Num) -> f.Atom:
        """What a function made of a leaf, as a leaf of its own type."""
        if self.ty == f.F64 or not f.is_float(own):
            return b.op("ne", (x, f.Const(0, U64))) if own == f.BOOL else cast(b, x, own)
        return cast(b, b.op("bitcast", (x,), to="f64"), own)


FLOATS = Leaves(frozenset(t.FLOATS), f.F64)
WORDS = Leaves(frozenset((*t.INTS, *t.FLOATS, "bool")), U64)


def cast(b: ValueBuilder, x: f.Atom, to: f.Num) -> f.Atom:
    return x if x.ty == to else b.op("cast", (x,), to=to.name)


def has_leaf(up: Lowering, of: Leaves, ty: t.Ty, seen: frozenset = frozenset()) -> bool:
    match ty:
        case t.Con(name) if name in up.datas.datas:
            inner = [up.datas.payload(ty, tag) for tag in range(len(up.datas.datas[name].cases))]
            return ty not in seen and any(has_leaf(up, of, p, seen | {ty}) for p in inner if p is not None)
        case t.Con("ref", (content,)):
            return has_leaf(up, of, a_type(content), seen)
        case t.Con(name):
            return name in of.kinds
        case t.Tup(items):
            return any(has_leaf(up, of, i, seen) for i in items)
        case t.Arr(elem):
            return has_leaf(up, of, elem, seen)
        case _:
            return False


# ---- maps -----------------------------------------------------------------------------------------------------------


@node
class Mapping:
    """Applies a function (closure and type) to the leaves of one operand, or to the leaves at the same places of two.
    Leaves that are not visited are those of the first operand."""

    body: Body
    of: Leaves
    fn: Value
    ty: t.Fn
    span: Span

    def over(self, ty: t.Ty, operands: Sequence[Value]) -> Value:
        up, b = self.body.up, self.body.b
        if not has_leaf(up, self.of, ty):
            return operands[0]
        match ty:
            case t.Con(name) if name in self.of.kinds:
                return self.apply([b.atom(x) for x in operands])
            case t.Con() if up.datas.unboxed(ty):
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
            ("mapped", self.of, self.ty, ty, len(operands)),
            (up.layout.flat(self.ty), *[flat] * len(operands)),
            lambda inner, fn, *xs: Mapping(inner, self.of, fn, self.ty, self.span).rebuilt(ty, xs),
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
            arrow = expect_type(t.Fn, ty)
            result, ty = self.body.apply(result, arrow, self.of.given(b, x), self.span), arrow.result
        return self.of.taken(b, b.atom(result), own)

    def array(self, ty: t.Arr, arrays: Sequence[f.Atom]) -> f.Atom:
        b = self.body.b
        first, *others = arrays
        for other in others:
            b.effect("same_shape", (other, first), self.span, what=MISFIT)
        rows = [flattened(b, a)[0] for a in arrays]
        _, count = flattened(b, first)
        index = b.var("i", f.I64)
        with b.inside() as binds:
            element = b.atom(self.over(innermost(self.body, ty), elements_at(b, index, *rows)))
        built = f.Build(index, count, block_of(binds, (element,)), self.span)
        result = b.one(built, f.Arr(elem_of(first.ty), 1), "mapped")
        if rank_of(first.ty) == 1:
            return result
        dims = [b.op("dim", (first,), k=k) for k in range(rank_of(first.ty))]
        return b.op("reshape", (result, *dims), self.span, unchecked=True)

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


def leaves(body: Body, of: Leaves, ty: t.Ty, value: Value) -> Value:
    """All leaves as one array.  Arrays of leaves are joined as they are, so that derivatives are slices."""
    arrays: list[f.Atom] = []
    for is_array, group in groupby(parts(body, of, ty, value), lambda x: isinstance(x.ty, f.Arr)):
        found = tuple(group)
        arrays += found if is_array else (body.b.op("array", found),)
    return joined(body.b, arrays) if arrays else nothing(body.b, of, integer(0))


def nothing(b: ValueBuilder, of: Leaves, count: f.Atom) -> f.Atom:
    return b.op("fill", (count, f.Const(0.0 if of.ty == f.F64 else 0, of.ty)))


def joined(b: ValueBuilder, arrays: Sequence[f.Atom]) -> f.Atom:
    """By halves, so that no number is copied more often than the logarithm of how many arrays there are."""
    if len(arrays) == 1:
        return arrays[0]
    half = len(arrays) // 2
    return b.op("concat", (joined(b, arrays[:half]), joined(b, arrays[half:])))


def parts(body: Body, of: Leaves, ty: t.Ty, value: Value) -> Iterator[f.Atom]:
    """The leaves in order, as numbers and arrays."""
    up, b = body.up, body.b
    if not has_leaf(up, of, ty):
        return
    match ty:
        case t.Con(name) if name in of.kinds:
            yield of.given(b, b.atom(value))
        case t.Con(name) if name != "ref" and up.datas.unboxed(ty) and (payload := up.datas.payload(ty, 0)):
            yield from parts(body, of, payload, value)
        case t.Tup(items):
            for item, part in zip(items, pieces(value)):
                yield from parts(body, of, item, part)
        case t.Arr() if isinstance(elem_of(up.layout.flat(ty)), f.Num):
            yield given_row(b, of, *flattened(b, value))
        case _:
            empty = nothing(b, of, counted(body, of, ty, value))
            yield b.atom(stored(body, of, ty, value, empty, integer(0))[0])


def given_row(b: ValueBuilder, of: Leaves, row: f.Atom, count: f.Atom) -> f.Atom:
    """An array of leaves as functions take them."""
    if elem_of(row.ty) == of.ty:
        return row
    index = b.var("i", f.I64)
    with b.inside() as binds:
        element = of.given(b, b.op("index", (row, index)))
    return b.one(f.Build(index, count, block_of(binds, (element,))), f.Arr(of.ty, 1), "leaves")


def counted(body: Body, of: Leaves, ty: t.Ty, value: Value) -> f.Atom:
    """The number of leaves in a value."""
    up, b = body.up, body.b
    if not has_leaf(up, of, ty):
        return integer(0)
    match ty:
        case t.Con(name) if name in of.kinds:
            return integer(1)
        case t.Con("ref", (content,)):
            return counted(body, of, a_type(content), content_of(b, value))
        case t.Con() if up.datas.unboxed(ty):
            payload = up.datas.payload(ty, 0)
            return integer(0) if payload is None else counted(body, of, payload, value)
        case t.Tup(items):
            total: f.Atom = integer(0)
            for item, part in zip(items, pieces(value)):
                total = b.op("add", (total, counted(body, of, item, part)))
            return total
        case t.Arr() if isinstance(elem_of(up.layout.flat(ty)), f.Num):
            return flattened(b, value)[1]
        case t.Arr():
            fn = up.function(("counted", of, ty), (up.layout.flat(ty),), lambda inner, x: count_array(inner, of, ty, x))
        case t.Con():
            fn = up.function(("counted", of, ty), (up.layout.flat(ty),), lambda inner, x: count_data(inner, of, ty, x))
        case _:
            raise Bug(f"no leaves in {ty}")
    return b.call(fn, (value,), f.I64)


def content_of(b: ValueBuilder, reference: Value) -> Value:
    return b.explode(b.op("ref_get", (b.atom(reference),)))


def count_array(body: Body, of: Leaves, ty: t.Arr, x: f.Atom) -> f.Atom:
    b = body.b
    row, length = flattened(b, x)
    index, total = b.var("i", f.I64), b.var("total", f.I64)
    with b.inside() as binds:
        here = counted(body, of, innermost(body, ty), b.explode(b.op("index", (row, index))))
        step = b.op("add", (total, here))
    return b.one(f.For(index, length, (total,), (integer(0),), block_of(binds, (step,))), f.I64, "total")


def count_data(body: Body, of: Leaves, ty: t.Con, x: f.Atom) -> f.Atom:
    return body.b.atom(
        by_constructor(
            body, ty, x, lambda _, argument: integer(0) if argument is None else counted(body, of, *argument)
        )
    )


def stored(body: Body, of: Leaves, ty: t.Ty, value: Value, into: Value, at: Value) -> tuple[Value, ...]:
    """Writes the leaves of `value` into an array from index `at` on.  Returns the array and the next index."""
    up, b = body.up, body.b
    if not has_leaf(up, of, ty):
        return into, at
    match ty:
        case t.Con(name) if name in of.kinds:
            return b.op("update", (into, of.given(b, b.atom(value)), at)), b.op("add", (at, integer(1)))
        case t.Con("ref", (content,)):
            return stored(body, of, a_type(content), content_of(b, value), into, at)
        case t.Con() if up.datas.unboxed(ty):
            payload = up.datas.payload(ty, 0)
            return (into, at) if payload is None else stored(body, of, payload, value, into, at)
        case t.Tup(items):
            for item, part in zip(items, pieces(value)):
                into, at = stored(body, of, item, part, into, at)
            return into, at
        case _:
            return call_stored(body, of, ty, value, into, at)


def call_stored(body: Body, of: Leaves, ty: t.Ty, value: Value, into: Value, at: Value) -> tuple[Value, ...]:
    up, b = body.up, body.b
    fn = up.function(
        ("stored", of, ty),
        (up.layout.flat(ty), f.Arr(of.ty, 1), f.I64),
        lambda inner, x, a, i: inner.b.atom(store_inside(inner, of, ty, x, a, i)),
    )
    return pieces(b.explode(b.call(fn, (value, into, at), f.Tup((f.Arr(of.ty, 1), f.I64)))))


def store_inside(body: Body, of: Leaves, ty: t.Ty, x: f.Atom, into: f.Atom, at: f.Atom) -> Value:
    match ty:
        case t.Arr():
            return store_array(body, of, ty, x, into, at)
        case t.Con():
            return by_constructor(
                body,
                ty,
                x,
                lambda _, argument: Bundle((into, at) if argument is None else stored(body, of, *argument, into, at)),
            )
        case _:
            raise Bug(f"no leaves in {ty}")


def store_array(body: Body, of: Leaves, ty: t.Arr, x: f.Atom, into: f.Atom, at: f.Atom) -> Value:
    b = body.b
    row, length = flattened(b, x)
    index, array, place = b.var("i", f.I64), b.var("a", f.Arr(of.ty, 1)), b.var("at", f.I64)
    with b.inside() as binds:
        step = b.atoms(stored(body, of, innermost(body, ty), b.explode(b.op("index", (row, index))), array, place))
    loop = f.For(index, length, (array, place), (into, at), block_of(binds, step))
    return Bundle(tuple(b.bind(loop, (f.Arr(of.ty, 1), f.I64), "stored")))
