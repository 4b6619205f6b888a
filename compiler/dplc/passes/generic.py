"""Equality, order, showing and appending of data -> flat functions, one for each type.

    print [Some 1; None]      call show.4 xs, which writes its text to the output buffer piece by piece

What is said here of order is said of the interpreter in `eval/structure.py`, of showing in `eval/show.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpl.core import ty as t
from dpl.diagnostics import Bug
from dpl.source import NOWHERE
from dplc.flat import term as f
from dplc.flat.build import UNIT, UNIT_ATOM, Builder, Bundle, Value, integer, leaves, pieces, type_of
from dplc.flat.types import rank_of

if TYPE_CHECKING:
    from dplc.passes.lower import Body, Lowering

LIMIT = 1000  # of elements; print abridges more
KEPT = 500
TRUE, FALSE = f.Const(True, f.BOOL), f.Const(False, f.BOOL)


def text(body: Body, s: str) -> None:
    body.b.effect("buf_str", (f.Const(s, f.STR),))


def cases_of(body: Body, ty: t.Con) -> list[tuple[str, t.Ty | None]]:
    """Constructors with the types of their arguments."""
    declared = body.up.datas.datas[ty.name]
    return [(name.rpartition(".")[2] or name, body.up.datas.payload(ty, tag))
            for tag, (name, _) in enumerate(declared.cases)]


def by_constructor(body: Body, ty: t.Con, scrutinee: f.Atom, arm: Callable[[int, t.Ty | None, Value | None], Value],
                   whole: bool = False) -> Value:
    """A Switch with one case for each constructor of a boxed data type."""
    payloads = body.up.layout.declared[scrutinee.ty.name].payloads
    vars_ = [None if p is None else body.b.var("of", p) for p in payloads]

    def case(tag: int) -> Value:
        var = vars_[tag]
        return arm(tag, body.up.datas.payload(ty, tag), None if var is None else body.b.explode(var))

    return body.join([lambda tag=tag: case(tag) for tag in range(len(vars_))], lambda blocks: f.Switch(scrutinee, tuple(
        [f.Case(tag, var, block) for tag, (var, block) in enumerate(zip(vars_, blocks, strict=True))]), None), whole)


def tag_of(up: Lowering, ty: t.Con) -> str:
    """Data -> the number of its constructor."""
    return up.function(("tag", ty), (up.layout.flat(ty),),
                       lambda body, x: body.b.atom(by_constructor(body, ty, x, lambda tag, _, __: integer(tag))))


# ---- equality and order ---------------------------------------------------------------------------------------------


def compare(body: Body, op: str, ty: t.Ty, left: Value, right: Value) -> Value:
    """One of eq ne lt le gt ge."""
    if isinstance(ty, t.Con) and ty.name not in body.up.datas.datas and isinstance(type_of(left), f.Num):
        return body.b.op(op, (left, right))
    if op not in ("eq", "ne"):
        return body.b.op(op, (ordered(body, ty, left, right), integer(0)))
    same = equal(body, ty, left, right)
    return same if op == "eq" else body.b.op("not", (same,))


def equal(body: Body, ty: t.Ty, left: Value, right: Value) -> f.Atom:
    match ty:
        case t.Con("string"):
            return body.b.op("eq", (body.b.op("str_cmp", (left, right)), integer(0)))
        case t.Con(name) if name not in body.up.datas.datas:
            return body.b.op("eq", (left, right))
        case t.Con(name) if body.up.datas.unboxed(name):
            payload = body.up.datas.payload(ty, 0)
            return TRUE if payload is None else equal(body, payload, left, right)
        case t.Tup(items):
            parts = list(zip(items, pieces(left), pieces(right), strict=True))
            return equal_all(body, [lambda p=p: equal(body, *p) for p in parts])
    fn = body.up.function(("equal", ty), (body.up.layout.flat(ty),) * 2,
                          lambda inner, x, y: equal_arrays(inner, ty, x, y) if isinstance(ty, t.Arr) else equal_data(inner, ty, x, y))
    return body.b.call(fn, (left, right), f.BOOL)


def equal_all(body: Body, tests: list[Callable[[], f.Atom]]) -> f.Atom:
    if len(tests) < 2:
        return tests[0]() if tests else TRUE
    first, *rest = tests
    return body.b.atom(body.branch(first(), lambda: equal_all(body, rest), lambda: FALSE))


def equal_data(body: Body, ty: t.Con, x: f.Atom, y: f.Atom) -> f.Atom:
    tag = tag_of(body.up, ty)
    same = body.b.op("eq", (body.b.call(tag, (x,), f.I64), body.b.call(tag, (y,), f.I64)))

    def arm(n: int, payload: t.Ty | None, left: Value | None) -> Value:
        if payload is None:
            return TRUE
        return argument_of(body, y, n, f.BOOL, lambda right: equal(body, payload, left, right))

    return body.b.atom(body.branch(same, lambda: by_constructor(body, ty, x, arm), lambda: FALSE))


def argument_of(body: Body, data: f.Atom, tag: int, result: f.Type, use: Callable[[Value], Value]) -> Value:
    """What `use` makes of a value's argument, whose constructor is known."""
    payloads = body.up.layout.declared[data.ty.name].payloads
    var = body.b.var("of", payloads[tag])
    thunks = [lambda: use(body.b.explode(var))]
    if len(payloads) > 1:
        thunks.append(lambda: body.fail("another constructor", result, NOWHERE))
    return body.join(thunks, lambda blocks: f.Switch(data, (f.Case(tag, var, blocks[0]),),
                                                     blocks[1] if len(payloads) > 1 else None))


def flattened(b: Builder, x: f.Atom) -> tuple[f.Atom, f.Atom]:
    """An array as one of rank 1, and its length."""
    total = b.op("dim", (x,), k=0)
    for k in range(1, rank_of(x.ty)):
        total = b.op("mul", (total, b.op("dim", (x,), k=k)))
    return (x if rank_of(x.ty) == 1 else b.op("reshape", (x, total))), total


def innermost(ty: t.Ty) -> t.Ty:
    while isinstance(ty, t.Arr):
        ty = ty.elem
    return ty


def equal_arrays(body: Body, ty: t.Arr, x: f.Atom, y: f.Atom) -> f.Atom:
    b = body.b

    def same_size(k: int) -> f.Atom:
        return b.op("eq", (b.op("dim", (x,), k=k), b.op("dim", (y,), k=k)))

    def elements() -> f.Atom:
        (left, count), (right, _) = flattened(b, x), flattened(b, y)
        return first_that(body, count, f.BOOL, TRUE, lambda ok: ok,
                          lambda i: equal(body, innermost(ty), *elements_at(b, i, left, right)))

    return equal_all(body, [*[lambda k=k: same_size(k) for k in range(rank_of(x.ty))], elements])


def elements_at(b: Builder, i: f.Atom, *arrays: f.Atom) -> list[Value]:
    return [b.explode(b.op("index", (a, i))) for a in arrays]


def first_that(body: Body, count: f.Atom, ty: f.Type, start: f.Atom, goes_on: Callable[[f.Atom], f.Atom],
               step: Callable[[f.Atom], f.Atom]) -> f.Atom:
    """A loop over indices that ends early: state (i, verdict)."""
    b = body.b
    i, verdict = b.var("i", f.I64), b.var("verdict", ty)
    with b.inside() as tests:
        cond = body.b.atom(body.branch(b.op("lt", (i, count)), lambda: goes_on(verdict), lambda: FALSE))
    with b.inside() as steps:
        results = (b.op("add", (i, integer(1))), step(i))
    loop = f.While((i, verdict), (integer(0), start), f.Block(tuple(tests), (cond,)), f.Block(tuple(steps), results))
    return b.bind(loop, (f.I64, ty), "verdict")[1]


def ordered(body: Body, ty: t.Ty, left: Value, right: Value) -> f.Atom:
    """-1, 0 or 1."""
    b = body.b
    match ty:
        case t.Con("string"):
            return b.op("str_cmp", (left, right))
        case t.Con(name) if name not in body.up.datas.datas:
            above = lambda: body.branch(b.op("gt", (left, right)), lambda: integer(1), lambda: integer(0))  # noqa: E731
            return b.atom(body.branch(b.op("lt", (left, right)), lambda: integer(-1), above))
        case t.Con(name) if body.up.datas.unboxed(name):
            payload = body.up.datas.payload(ty, 0)
            return integer(0) if payload is None else ordered(body, payload, left, right)
        case t.Tup(items):
            parts = list(zip(items, pieces(left), pieces(right), strict=True))
            return lexicographic(body, [lambda p=p: ordered(body, *p) for p in parts])
    fn = body.up.function(("order", ty), (body.up.layout.flat(ty),) * 2,
                          lambda inner, x, y: order_arrays(inner, ty, x, y) if isinstance(ty, t.Arr) else order_data(inner, ty, x, y))
    return b.call(fn, (left, right), f.I64)


def lexicographic(body: Body, orders: list[Callable[[], f.Atom]]) -> f.Atom:
    if len(orders) < 2:
        return orders[0]() if orders else integer(0)
    first = orders[0]()
    same = body.b.op("eq", (first, integer(0)))
    return body.b.atom(body.branch(same, lambda: lexicographic(body, orders[1:]), lambda: first))


def order_data(body: Body, ty: t.Con, x: f.Atom, y: f.Atom) -> f.Atom:
    tag = tag_of(body.up, ty)
    tags = [body.b.call(tag, (v,), f.I64) for v in (x, y)]

    def arm(n: int, payload: t.Ty | None, left: Value | None) -> Value:
        if payload is None:
            return integer(0)
        return argument_of(body, y, n, f.I64, lambda right: ordered(body, payload, left, right))

    return body.b.atom(body.branch(body.b.op("eq", tags), lambda: by_constructor(body, ty, x, arm),
                                   lambda: ordered(body, t.I64, *tags)))


def order_arrays(body: Body, ty: t.Arr, x: f.Atom, y: f.Atom) -> f.Atom:
    b = body.b
    (left, n), (right, m) = flattened(b, x), flattened(b, y)
    found = first_that(body, b.op("min", (n, m)), f.I64, integer(0), lambda order: b.op("eq", (order, integer(0))),
                       lambda i: ordered(body, innermost(ty), *elements_at(b, i, left, right)))
    lengths = [b.op("dim", (a,), k=0) for a in (x, y)]
    return lexicographic(body, [lambda: found, lambda: ordered(body, t.I64, *lengths)])


# ---- showing --------------------------------------------------------------------------------------------------------


def show(body: Body, ty: t.Ty, value: Value, *, abridged: bool = False, argument: bool = False) -> None:
    """Write to the output buffer; `argument`: of a constructor, in parentheses where it needs them."""
    match ty:
        case t.Fn():
            text(body, "<fun>")
        case t.Con("string"):
            body.b.effect("buf_quoted", (value,))
        case t.Con("bool"):
            body.b.effect("buf_num", (value,))
        case t.Con(name) if name not in body.up.datas.datas and name != "ref":
            show_number(body, value, argument and name[0] != "u")
        case t.Tup(items):
            text(body, "(")
            for i, (part, item) in enumerate(zip(pieces(value), items, strict=True)):
                text(body, ", ") if i else None
                show(body, item, part, abridged=abridged)
            text(body, ")")
        case _:
            fn = body.up.function(("show", ty, abridged, argument), (body.up.layout.flat(ty),),
                                  lambda inner, x: show_one(inner, ty, x, abridged, argument))
            body.b.bind(f.Call(fn, (body.b.atom(value),)), (f.UNIT,))


def show_number(body: Body, x: f.Atom, argument: bool) -> None:
    if not argument:
        body.b.effect("buf_num", (x,))
        return
    fn = body.up.function(("show_argument", x.ty), (x.ty,), show_signed)
    body.b.bind(f.Call(fn, (x,)), (f.UNIT,))


def show_signed(body: Body, x: f.Atom) -> f.Atom:
    """A number whose text begins with `-` (that of -0.0 does) stands in parentheses."""
    b = body.b
    zero = f.Const(0.0 if f.is_float(x.ty) else 0, x.ty)
    negative = b.op("lt", (x, zero))
    if f.is_float(x.ty):
        below = lambda: b.op("lt", (b.op("div", (f.Const(1.0, x.ty), x)), zero))  # noqa: E731
        negative = b.atom(body.branch(b.op("eq", (x, zero)), below, lambda: negative))

    def parenthesised() -> Value:
        text(body, "(")
        b.effect("buf_num", (x,))
        text(body, ")")
        return UNIT

    def plain() -> Value:
        b.effect("buf_num", (x,))
        return UNIT

    body.branch(negative, parenthesised, plain)
    return UNIT_ATOM


def show_one(body: Body, ty: t.Ty, x: Value, abridged: bool, argument: bool) -> f.Atom:
    match ty:
        case t.Arr(elem):
            show_array(body, elem, x, abridged)
        case t.Con("list", (elem,)):
            show_list(body, ty, elem, x, abridged)
        case t.Con("ref", (content,)):
            show_application(body, "ref", content, body.b.explode(body.b.op("ref_get", (x,))), abridged, argument)
        case t.Con(name) if body.up.datas.datas[name].fields:
            opened(body, ty, x, lambda _, payload, fields: show_record(body, ty, payload, fields, abridged))
        case t.Con():
            names = [name for name, _ in cases_of(body, ty)]
            opened(body, ty, x, lambda tag, payload, arg: show_application(body, names[tag], payload, arg, abridged, argument))
    return UNIT_ATOM


def opened(body: Body, ty: t.Con, x: Value, arm: Callable[[int, t.Ty | None, Value | None], Value]) -> None:
    if body.up.datas.unboxed(ty.name):
        arm(0, body.up.datas.payload(ty, 0), x)
    else:
        by_constructor(body, ty, x, arm)


def show_application(body: Body, name: str, ty: t.Ty | None, arg: Value | None, abridged: bool, argument: bool) -> Value:
    if ty is None:
        text(body, name)
        return UNIT
    text(body, f"({name} " if argument else f"{name} ")
    show(body, ty, arg, abridged=abridged, argument=True)
    text(body, ")") if argument else None
    return UNIT


def show_record(body: Body, ty: t.Con, payload: t.Ty, value: Value, abridged: bool) -> Value:
    names = body.up.datas.datas[ty.name].fields
    lone = body.up.datas.lone_field(ty.name)
    parts = [(payload, value)] if lone else list(zip(payload.items, pieces(value), strict=True))
    for i, (name, (field, part)) in enumerate(zip(names, parts, strict=True)):
        text(body, f"; {name} = " if i else f"{{ {name} = ")
        show(body, field, part, abridged=abridged)
    text(body, " }")
    return UNIT


def show_array(body: Body, elem: t.Ty, x: f.Atom, abridged: bool) -> None:
    b = body.b
    count = b.op("dim", (x,), k=0)
    index = b.var("i", f.I64)
    text(body, "[")
    with b.inside() as binds:
        show_item(body, index, count, ", ", abridged, lambda: show(
            body, elem, b.explode(b.op("index", (x, index))), abridged=abridged))
    b.bind(f.For(index, count, (), (), f.Block(tuple(binds), ())), ())
    text(body, "]")


def show_item(body: Body, index: f.Atom, count: f.Atom, separator: str, abridged: bool, item: Callable[[], None]) -> None:
    """One of `count`, unless it is in the part left out."""

    def shown() -> Value:
        body.branch(body.b.op("gt", (index, integer(0))), lambda: said(separator), lambda: UNIT)
        item()
        return UNIT

    def said(s: str) -> Value:
        text(body, s)
        return UNIT

    def left_out() -> Value:
        return body.branch(body.b.op("eq", (index, integer(KEPT))), lambda: said(f"{separator}..."), lambda: UNIT)

    if not abridged:
        shown()
        return
    b = body.b
    late = b.op("ge", (index, b.op("sub", (count, integer(KEPT)))))
    near = b.op("or", (late, b.op("lt", (index, integer(KEPT)))))
    body.branch(b.op("or", (near, b.op("le", (count, integer(LIMIT))))), shown, left_out)


def list_length(up: Lowering, ty: t.Con) -> str:
    def make(body: Body, xs: f.Atom, count: f.Atom) -> f.Atom:
        def arm(tag: int, _: t.Ty | None, cell: Value | None) -> Value:
            if tag == 0:
                return count
            return body.b.call(fn, (pieces(cell)[1], body.b.op("add", (count, integer(1)))), f.I64)

        return body.b.atom(by_constructor(body, ty, xs, arm, whole=True))

    fn = up.function(("list_length", ty), (up.layout.flat(ty), f.I64), make)
    return fn


def show_list(body: Body, ty: t.Con, elem: t.Ty, x: f.Atom, abridged: bool) -> None:
    b = body.b
    count = b.call(list_length(body.up, ty), (x, integer(0)), f.I64)
    index, rest = b.var("i", f.I64), b.var("rest", x.ty)

    def cell(tag: int, _: t.Ty | None, value: Value | None) -> Value:
        if tag == 0:
            return rest
        show_item(body, index, count, "; ", abridged, lambda: show(body, elem, pieces(value)[0], abridged=abridged))
        return pieces(value)[1]

    text(body, "[")
    with b.inside() as binds:
        results = tuple(leaves(by_constructor(body, ty, rest, cell)))
    b.bind(f.For(index, count, (rest,), (x,), f.Block(tuple(binds), results)), (x.ty,), "rest")

    def closing(s: str) -> Value:
        text(body, s)
        return UNIT

    body.branch(b.op("eq", (count, integer(1))), lambda: closing(";]"), lambda: closing("]"))


# ---- lists ----------------------------------------------------------------------------------------------------------


def append(up: Lowering, ty: t.Ty) -> str:
    """The function that appends two lists."""
    if not isinstance(ty, t.Con) or ty.name != "list":
        raise Bug(f"`++` of {ty}")
    flat = up.layout.flat(ty)

    def make(body: Body, xs: f.Atom, ys: f.Atom) -> f.Atom:
        def arm(tag: int, _: t.Ty | None, cell: Value | None) -> Value:
            if tag == 0:
                return ys
            rest = body.b.call(fn, (pieces(cell)[1], ys), flat)
            return body.construct(ty, 1, Bundle((pieces(cell)[0], rest)))

        return body.b.atom(by_constructor(body, ty, xs, arm))

    fn = up.function(("append", ty), (flat, flat), make)
    return fn
