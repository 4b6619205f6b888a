"""Taking data of a ground type apart in flat.  Comparison, printing and tree maps are built from these functions.

by_constructor(body, option, x, arm)      switch x { None -> arm(0, None); Some v -> arm(1, (f64, v)) }
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import ty as t
from dpl.source import NOWHERE, Span

from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.types import rank_of
from dplc.flat.values import Value, ValueBuilder, block_of, leaves, pieces
from dplc.narrow import expect_type
from dplc.passes.lower.body import Body

MISFIT = "the two values do not have one form"

Argument = tuple[t.Ty, Value] | None  # a constructor's argument: its type and value


def payloads_of(body: Body, data: f.Atom) -> tuple[f.Type | None, ...]:
    """The types of the arguments of the constructors, in order; None for those that have none."""
    return body.up.layout.declared[expect_type(f.Data, data.ty).name].payloads


def by_constructor(
    body: Body, ty: t.Con, data: Value, arm: Callable[[int, Argument], Value], whole: bool = False
) -> Value:
    """A Switch with one case for each constructor.  Unboxed data (represented by its payload alone) needs no Switch."""
    up = body.up
    if up.datas.unboxed(ty):
        payload = up.datas.payload(ty, 0)
        return arm(0, None if payload is None else (payload, data))
    scrutinee = body.b.atom(data)
    vars_ = [None if p is None else body.b.var("of", p) for p in payloads_of(body, scrutinee)]

    def case(tag: int) -> Value:
        var, payload = vars_[tag], up.datas.payload(ty, tag)
        return arm(tag, None if var is None or payload is None else (payload, body.b.explode(var)))

    return body.join(
        [lambda tag=tag: case(tag) for tag in range(len(vars_))],
        lambda blocks: f.Switch(
            scrutinee, tuple([f.Case(tag, var, block) for tag, (var, block) in enumerate(zip(vars_, blocks))]), None
        ),
        whole,
    )


def same_constructor(
    body: Body, data: Value, tag: int, use: Callable[[Value | None], Value], otherwise: Callable[[], Value]
) -> Value:
    """A Switch on one constructor: `use` gets its argument, `otherwise` covers all other constructors."""
    scrutinee = body.b.atom(data)
    payloads = payloads_of(body, scrutinee)
    payload = payloads[tag]
    var = None if payload is None else body.b.var("of", payload)
    thunks = [lambda: use(None if var is None else body.b.explode(var)), *([otherwise] if len(payloads) > 1 else [])]
    return body.join(thunks, lambda blocks: f.Switch(scrutinee, (f.Case(tag, var, blocks[0]),), *blocks[1:] or [None]))


def other_constructor(body: Body, result: f.Type, span: Span = NOWHERE) -> Callable[[], Value]:
    """Code that fails (R0503), as two values of one form are needed."""
    message = f"{MISFIT}: different constructors; lists of different lengths have them too"
    return lambda: body.fail(message, result, span, "R0503")


def tag_of(body: Body, ty: t.Con, data: Value) -> f.Atom:
    """The tag of a value's constructor."""
    up = body.up
    fn = up.function(
        ("tag", ty),
        (up.layout.flat(ty),),
        lambda inner, x: inner.b.atom(by_constructor(inner, ty, x, lambda tag, _: integer(tag))),
    )
    return body.b.call(fn, (data,), f.I64)


def is_scalar(body: Body, ty: t.Ty) -> bool:
    """True for numbers and booleans."""
    return isinstance(ty, t.Con) and ty.name not in body.up.datas.datas and ty.name not in ("string", "ref")


def innermost(body: Body, ty: t.Ty) -> t.Ty:
    """The element type of an array, through nested arrays and through unboxed data that contain only an array."""
    datas, inside = body.up.datas, ty
    while isinstance(inside, t.Con) and inside.name in datas.datas and datas.unboxed(inside):
        payload = datas.payload(inside, 0)
        if payload is None:
            break
        inside = payload
    return innermost(body, inside.elem) if isinstance(inside, t.Arr) else ty


def each_item(body: Body, ty: t.Con, x: f.Atom, use: Callable[[f.Atom, f.Atom, t.Ty, Value], object]) -> f.Atom:
    """A loop over a list that calls `use` with an index, the list's length, the type of items and an item.  Returns the
    length."""
    b = body.b
    count = list_length(body, ty, x)
    index, rest = b.var("i", f.I64), b.var("rest", x.ty)

    def cell(_tag: int, argument: Argument) -> Value:
        if argument is None:
            return rest
        head, tail = pieces(argument[1])
        use(index, count, expect_type(t.Tup, argument[0]).items[0], head)
        return tail

    with b.inside() as binds:
        results = tuple(leaves(by_constructor(body, ty, rest, cell)))
    b.bind(f.For(index, count, (rest,), (x,), block_of(binds, results)), (x.ty,), "rest")
    return count


def list_length(body: Body, ty: t.Con, x: f.Atom) -> f.Atom:
    key, params = ("list_length", ty), (x.ty, f.I64)

    def make(inner: Body, xs: f.Atom, so_far: f.Atom) -> f.Atom:
        def arm(_tag: int, argument: Argument) -> Value:
            if argument is None:
                return so_far
            more = inner.b.op("add", (so_far, integer(1)))
            return inner.b.call(inner.up.function(key, params, make), (pieces(argument[1])[1], more), f.I64)

        return inner.b.atom(by_constructor(inner, ty, xs, arm, whole=True))

    return body.b.call(body.up.function(key, params, make), (x, integer(0)), f.I64)


def flattened(b: ValueBuilder, array: Value) -> tuple[f.Atom, f.Atom]:
    """An array reshaped to rank 1, and its length."""
    x = b.atom(array)
    total: f.Atom = b.op("dim", (x,), k=0)
    for k in range(1, rank_of(x.ty)):
        total = b.op("mul", (total, b.op("dim", (x,), k=k)))
    return (x if rank_of(x.ty) == 1 else b.op("reshape", (x, total), unchecked=True)), total


def elements_at(b: ValueBuilder, i: f.Atom, *arrays: f.Atom) -> list[Value]:
    """The elements of arrays at one index."""
    return [b.explode(b.op("index", (a, i))) for a in arrays]
