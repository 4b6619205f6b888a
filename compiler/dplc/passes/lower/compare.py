"""Equality and order of data -> flat functions, one for each type.

    (1, "a") < (1, "b")      c = order of 1 and 1; if c = 0 then str_cmp "a" "b" else c; lt c 0

Equality of floats is IEEE's, also inside data.  Order inside data is total, so that data can be sorted: there NaN comes
after all numbers and beside itself.  Two numbers that are not inside data are compared by the machine's instructions.
The interpreter's side is `eval/values/structure.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.core import ty as t
from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat.build import integer, product
from dplc.flat.types import rank_of
from dplc.flat.values import Value, block_of, pieces
from dplc.passes.lower.body import Body
from dplc.passes.lower.dissect import (
    Argument,
    by_constructor,
    elements_at,
    flattened,
    innermost,
    is_scalar,
    other_constructor,
    same_constructor,
    tag_of,
)  # fmt: skip

TRUE, FALSE = f.Const(True, f.BOOL), f.Const(False, f.BOOL)


def compare(body: Body, op: str, ty: t.Ty, left: Value, right: Value) -> Value:
    """One of the comparisons eq ne lt le gt ge."""
    if is_scalar(body, ty):
        return body.b.op(op, (left, right))
    if op in ("eq", "ne"):
        same = equal(body, ty, left, right)
        return same if op == "eq" else body.b.op("not", (same,))
    return body.b.op(op, (ordered(body, ty, left, right), integer(0)))


# ---- equality -------------------------------------------------------------------------------------------------------


def equal(body: Body, ty: t.Ty, left: Value, right: Value) -> f.Atom:
    up, b = body.up, body.b
    if is_scalar(body, ty):
        return b.op("eq", (left, right))
    both = (up.layout.flat(ty),) * 2
    match ty:
        case t.Con("string"):
            return b.op("eq", (b.op("str_cmp", (left, right)), integer(0)))
        case t.Con() if up.datas.unboxed(ty):
            payload = up.datas.payload(ty, 0)
            return TRUE if payload is None else equal(body, payload, left, right)
        case t.Tup(items):
            pairs = list(zip(items, pieces(left), pieces(right)))
            return all_hold(body, [lambda pair=pair: equal(body, *pair) for pair in pairs])
        case t.Arr():
            fn = up.function(("equal", ty), both, lambda inner, x, y: equal_arrays(inner, ty, x, y))
        case t.Con():
            fn = up.function(("equal", ty), both, lambda inner, x, y: equal_data(inner, ty, x, y))
        case _:
            raise Bug(f"no equality for {ty}")
    return b.call(fn, (left, right), f.BOOL)


def all_hold(body: Body, tests: list[Callable[[], f.Atom]]) -> f.Atom:
    if len(tests) < 2:
        return tests[0]() if tests else TRUE
    first, *rest = tests
    return body.b.atom(body.branch(first(), lambda: all_hold(body, rest), lambda: FALSE))


def equal_data(body: Body, ty: t.Con, x: f.Atom, y: f.Atom) -> f.Atom:
    def arm(tag: int, argument: Argument) -> Value:
        if argument is None:
            return TRUE
        payload, left = argument
        return same_constructor(
            body, y, tag, lambda right: equal(body, payload, left, some(right)), other_constructor(body, f.BOOL)
        )

    same = body.b.op("eq", (tag_of(body, ty, x), tag_of(body, ty, y)))
    return body.b.atom(body.branch(same, lambda: by_constructor(body, ty, x, arm), lambda: FALSE))


def some(value: Value | None) -> Value:
    if value is None:
        raise Bug("a constructor's argument is missing")
    return value


def equal_arrays(body: Body, ty: t.Arr, x: f.Atom, y: f.Atom) -> f.Atom:
    b = body.b

    def same_size(k: int) -> f.Atom:
        """The inner sizes of an array without rows may be wrong, so they are not compared."""
        same = b.op("eq", (b.op("dim", (x,), k=k), b.op("dim", (y,), k=k)))
        if not k:
            return same
        rows = product(b, [b.op("dim", (x,), k=j) for j in range(k)])
        return b.op("or", (same, b.op("eq", (rows, integer(0)))))

    def same_elements() -> f.Atom:
        (left, count), (right, _) = flattened(b, x), flattened(b, y)
        element = innermost(body, ty)
        return while_so(
            body, count, TRUE, lambda ok: ok, lambda i: equal(body, element, *elements_at(b, i, left, right))
        )

    return all_hold(body, [*[lambda k=k: same_size(k) for k in range(rank_of(x.ty))], same_elements])


def while_so(
    body: Body, count: f.Atom, start: f.Const, goes_on: Callable[[f.Atom], f.Atom], step: Callable[[f.Atom], f.Atom]
) -> f.Atom:
    """A loop over indices that carries a verdict and ends when the verdict is final."""
    b = body.b
    i, verdict = b.var("i", f.I64), b.var("verdict", start.ty)
    with b.inside() as tests:
        cond = b.atom(body.branch(b.op("lt", (i, count)), lambda: goes_on(verdict), lambda: FALSE))
    with b.inside() as steps:
        results = (b.op("add", (i, integer(1))), step(i))
    loop = f.While((i, verdict), (integer(0), start), block_of(tests, (cond,)), block_of(steps, results))
    return b.bind(loop, (f.I64, start.ty), "verdict")[1]


# ---- order ----------------------------------------------------------------------------------------------------------


def ordered(body: Body, ty: t.Ty, left: Value, right: Value) -> f.Atom:
    """The order of two values, as a number below, at or above 0."""
    up, b = body.up, body.b
    if is_scalar(body, ty):
        return order_numbers(body, left, right)
    both = (up.layout.flat(ty),) * 2
    match ty:
        case t.Con("string"):
            return b.op("str_cmp", (left, right))
        case t.Con() if up.datas.unboxed(ty):
            payload = up.datas.payload(ty, 0)
            return integer(0) if payload is None else ordered(body, payload, left, right)
        case t.Tup(items):
            pairs = list(zip(items, pieces(left), pieces(right)))
            return first_difference(body, [lambda pair=pair: ordered(body, *pair) for pair in pairs])
        case t.Arr():
            fn = up.function(("order", ty), both, lambda inner, x, y: order_arrays(inner, ty, x, y))
        case t.Con():
            fn = up.function(("order", ty), both, lambda inner, x, y: order_data(inner, ty, x, y))
        case _:
            raise Bug(f"no order for {ty}")
    return b.call(fn, (left, right), f.I64)


def order_numbers(body: Body, left: Value, right: Value) -> f.Atom:
    b = body.b
    pair = b.atom(left), b.atom(right)

    def neither() -> Value:
        if not f.is_float(pair[0].ty):
            return integer(0)
        lost = [b.op("cast", (b.op("ne", (x, x)),), to="i64") for x in pair]
        return b.op("sub", (lost[0], lost[1]))

    def not_below() -> Value:
        return body.branch(b.op("gt", pair), lambda: integer(1), neither)

    return b.atom(body.branch(b.op("lt", pair), lambda: integer(-1), not_below))


def first_difference(body: Body, orders: list[Callable[[], f.Atom]]) -> f.Atom:
    if len(orders) < 2:
        return orders[0]() if orders else integer(0)
    first = orders[0]()
    same = body.b.op("eq", (first, integer(0)))
    return body.b.atom(body.branch(same, lambda: first_difference(body, orders[1:]), lambda: first))


def order_data(body: Body, ty: t.Con, x: f.Atom, y: f.Atom) -> f.Atom:
    def arm(tag: int, argument: Argument) -> Value:
        if argument is None:
            return integer(0)
        payload, left = argument
        return same_constructor(
            body, y, tag, lambda right: ordered(body, payload, left, some(right)), other_constructor(body, f.I64)
        )

    tags = tag_of(body, ty, x), tag_of(body, ty, y)
    same = body.b.op("eq", tags)
    return body.b.atom(body.branch(same, lambda: by_constructor(body, ty, x, arm), lambda: order_numbers(body, *tags)))


def order_arrays(body: Body, ty: t.Arr, x: f.Atom, y: f.Atom) -> f.Atom:
    b = body.b
    (left, n), (right, m) = flattened(b, x), flattened(b, y)
    found = while_so(
        body,
        b.op("min", (n, m)),
        integer(0),
        lambda order: b.op("eq", (order, integer(0))),
        lambda i: ordered(body, innermost(body, ty), *elements_at(b, i, left, right)),
    )
    lengths = [b.op("dim", (a,), k=0) for a in (x, y)]
    return first_difference(body, [lambda: found, lambda: order_numbers(body, *lengths)])
