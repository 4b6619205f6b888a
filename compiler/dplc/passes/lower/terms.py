"""Core terms -> flat: the case analysis.  The larger cases have files of their own."""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t
from dpl.diagnostics import Bug

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.values import UNIT, Bundle, Value, pieces
from dplc.narrow import expect_type
from dplc.passes.lower.body import Body
from dplc.passes.lower.decision_trees import lower_match
from dplc.passes.lower.dissect import Argument, by_constructor
from dplc.passes.lower.long_lists import long_list
from dplc.passes.lower.loops import build, count_loop, while_loop
from dplc.passes.lower.primitives import lower_primitive


def lower_term(body: Body, e: c.Term, whole: bool) -> Value:  # noqa: C901 -- one case per form
    """`whole`: a tuple may stay in one piece."""
    match e:
        case c.Var():
            return variable(body, e)
        case c.Lit(_, _, value):
            return f.Const(value, body.flat(e))
        case c.Let() | c.LetRec():
            return lets(body, e, whole)
        case c.Prim():
            return lower_primitive(body, e)
        case c.App(span, _, fn, arg):
            closure = body.term(fn)
            return body.apply(closure, expect_type(t.Fn, body.type_of(fn)), body.term(arg), span, whole)
        case c.Lam():
            source = body.up.solved.lambdas[id(e)]
            return body.close(body.type_of(e), source, [body.env[name] for name in source.captures])
        case c.Tuple(_, _, items):
            return Bundle(tuple([body.term(i) for i in items])) if items else UNIT
        case c.Con(_, _, _, tag, arg):
            return long_list(body, e) or construct(body, expect_type(t.Con, body.type_of(e)), tag, arg)
        case c.Field(_, _, record, index):
            return field(body, record, index)
        case c.Update():
            return update(body, e)
        case c.ArrayLit(_, _, items):
            return array(body, [body.atom(i) for i in items], e)
        case c.If(_, _, cond, then, else_):
            test = body.atom(cond)
            if isinstance(test, f.Const):
                return body.term(then if test.value else else_, whole)
            return body.branch(test, lambda: body.term(then, whole), lambda: body.term(else_, whole), whole)
        case c.Match(_, _, scrutinee, arms):
            return lower_match(body, body.term(scrutinee), arms, body.flat(e), whole)
        case c.For():
            return count_loop(body, e)
        case c.While():
            return while_loop(body, e)
        case c.Build():
            return build(body, e)
        case c.Check(span, _, name, inner, pairs):
            value = body.env[name] = body.term(inner)
            for actual, expected, what in pairs:
                name = "check_equal" if what and "{a}" not in what else "check_lengths"
                body.b.effect(name, (body.atom(actual), body.atom(expected)), span, what=what)
            return value
        case _:
            raise Bug(f"not a term after mono: {e}")


def variable(body: Body, e: c.Var) -> Value:
    function = body.up.solved.functions.get(e.name)
    if function is None:
        return body.env[e.name]
    return body.close(body.type_of(e), function, [body.env[name] for name in function.captures])


def lets(body: Body, e: c.Term, whole: bool) -> Value:
    while isinstance(e, c.Let | c.LetRec):
        if isinstance(e, c.Let):
            body.bind(e.name, body.term(e.rhs), e.body)
        else:
            closures = {name: body.term(rhs) for name, rhs in e.bindings}
            body.env |= closures
        e = e.body
    return body.term(e, whole)


def construct(body: Body, ty: t.Con, tag: int, arg: c.Term | None) -> Value:
    if arg is None:
        return body.construct(ty, tag, None)
    value = body.term(arg)
    return body.construct(ty, tag, Bundle((value,)) if body.up.datas.tuple_of_one(ty) else value)


def field(body: Body, record: c.Term, index: int) -> Value:
    value = body.term(record)
    ty = expect_type(t.Con, body.type_of(record))
    lone = body.up.datas.lone_field(ty)

    def pick(_tag: int, argument: Argument) -> Value:
        if argument is None:
            raise Bug(f"{ty.name} has no fields")
        return argument[1] if lone else pieces(argument[1])[index]

    return by_constructor(body, ty, value, pick)


def update(body: Body, e: c.Update) -> Value:
    old, given = body.term(e.record), {index: body.term(value) for index, value in e.fields}
    ty = expect_type(t.Con, body.type_of(e.record))

    def content(_tag: int, argument: Argument) -> Value:
        if argument is None:
            raise Bug(f"{ty.name} has no fields")
        if body.up.datas.lone_field(ty):
            return given[0]
        parts = list(pieces(argument[1]))
        for index, value in given.items():
            parts[index] = value
        return Bundle(tuple(parts))

    return body.construct(body.type_of(e), 0, by_constructor(body, ty, old, content))


def array(body: Body, items: list[f.Atom], e: c.Term) -> Value:
    if items:
        return body.b.op("array", items, e.span)
    ty = body.flat(e)
    zeros = [f.Const(0, f.I64)] * rank_of(ty)
    return body.b.one(f.Op("acc_zeros", (f.Const(None, ty), *zeros)), ty, "empty")
