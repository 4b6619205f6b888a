"""Primitives of differentiation -> Ad sites, rules and checkpoints.

    vjp f x      (y, r) = vjp loss@site.0 (captures of f ..., x)      value: y and the pullback closure of r

A pullback is a function value that captures the residual; applying it is the `pullback` of the same site.
"""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t
from dpl.source import NOWHERE

from dplc.flat import term as f
from dplc.flat.types import of_rank
from dplc.flat.values import Bundle, Value, pieces
from dplc.narrow import expect_type
from dplc.passes.closures.ground import ground_set
from dplc.passes.closures.set_types import Pullback
from dplc.passes.lower import trees
from dplc.passes.lower.body import Body


def jvp(body: Body, e: c.Prim) -> Value:
    """The value and the tangent, by a site of differentiation.  The captures have no tangents at this site."""
    fn, ty = body.term(e.args[0]), expect_type(t.Fn, body.type_of(e.args[0]))
    x, dx = [body.atom(a) for a in e.args[1:]]
    result = body.up.layout.flat(ty.result)
    args = (*body.captured(fn, ty), x, dx)
    rhs = f.Ad("jvp", body.differentiated(ty), args, body.up.layout.site(ty), e.span)
    return Bundle(tuple([body.b.explode(v) for v in body.b.bind(rhs, (result, result), "y")]))


def taylor(body: Body, e: c.Prim) -> Value:
    """The coefficients up to the order, as an array."""
    order = body.atom(e.args[0])
    fn, ty = body.term(e.args[1]), expect_type(t.Fn, body.type_of(e.args[1]))
    x = body.atom(e.args[2])
    result, args = body.up.layout.flat(ty.result), (*body.captured(fn, ty), order, x)
    rhs = f.Ad("jet", body.differentiated(ty), args, body.up.layout.site(ty), e.span)
    _, coefficients = body.b.bind(rhs, (result, of_rank(result, 1)), "y")
    return coefficients


def vjp(body: Body, e: c.Prim) -> Value:
    """The value, and the pullback: a function whose capture is the residual."""
    fn, ty = body.term(e.args[0]), expect_type(t.Fn, body.type_of(e.args[0]))
    x = body.atom(e.args[1])
    site = body.up.layout.site(ty)
    rhs = f.Ad("vjp", body.differentiated(ty), (*body.captured(fn, ty), x), site, e.span)
    y, residual = body.b.bind(rhs, (body.up.layout.flat(ty.result), f.Res(site)), "y")
    pullback = expect_type(t.Tup, body.type_of(e)).items[1]
    member = next(
        m for m, captures in ground_set(pullback).members.items() if isinstance(m, Pullback) and captures == (ty,)
    )
    return Bundle((body.b.explode(y), body.close(pullback, member, [residual])))


def checkpoint(body: Body, e: c.Prim) -> Value:
    """The call in a function of its own, whose callers keep its arguments only and compute it again."""
    fn, ty = body.term(e.args[0]), expect_type(t.Fn, body.type_of(e.args[0]))
    arg = body.term(e.args[1])
    flat = body.up.layout.flat
    name = body.up.function(
        ("checkpoint", ty), (flat(ty), flat(ty.arg)), lambda inner, fn, x: inner.b.atom(inner.apply(fn, ty, x, e.span))
    )
    body.up.program.checkpoints.add(name)
    return body.b.explode(body.b.call(name, (fn, arg), flat(ty.result), e.span))


def with_rule(body: Body, e: c.Prim) -> Value:
    """`with_vjp` and `with_jvp`, applied to an argument: a call of a function with a custom rule.  The captures of this
    function are the two closures."""
    up, flat = body.up, body.up.layout.flat
    fn, rule, x = [body.term(a) for a in e.args]
    ty, rule_ty = [expect_type(t.Fn, body.type_of(a)) for a in e.args[:2]]
    kind = "vjp" if e.op == "with_vjp" else "jvp"
    params = (flat(ty), flat(rule_ty), flat(ty.arg))
    name = up.function(
        (f"ruled_{kind}", ty, rule_ty), params, lambda inner, fn, rule, x: inner.b.atom(inner.apply(fn, ty, x, e.span))
    )
    if name not in up.program.rules:
        if kind == "vjp":
            pullback = expect_type(t.Fn, expect_type(t.Tup, rule_ty.result).items[1])
            rule_fn = up.function(("rule_vjp", ty, rule_ty), params, reverse_rule(rule_ty))
            up.program.rules[name] = f.Rule("vjp", rule_fn, up.applying(pullback))
        else:
            rule_fn = up.function(("rule_jvp", ty, rule_ty), (*params, flat(ty.arg)), forward_rule(rule_ty))
            up.program.rules[name] = f.Rule("jvp", rule_fn)
    return body.b.explode(body.b.call(name, (fn, rule, x), flat(ty.result), e.span))


def reverse_rule(rule_ty: t.Fn):
    def make(body: Body, _fn: Value, rule: Value, x: Value) -> list[f.Atom]:
        pair = body.apply(rule, rule_ty, x, NOWHERE)
        return list(body.b.atoms(pieces(pair)))

    return make


def forward_rule(rule_ty: t.Fn):
    def make(body: Body, _fn: Value, rule: Value, x: Value, dx: Value) -> list[f.Atom]:
        linear = body.apply(rule, rule_ty, x, NOWHERE)
        pair = body.apply(linear, expect_type(t.Fn, rule_ty.result), dx, NOWHERE)
        return list(body.b.atoms(pieces(pair)))

    return make


def tree_map(body: Body, e: c.Prim) -> Value:
    """tree_map, tree_map2 and tree_map_words."""
    fn, *operands = [body.term(a) for a in e.args]
    ty = expect_type(t.Fn, body.type_of(e.args[0]))
    return trees.Mapping(body, visited(e), fn, ty, e.span).over(body.type_of(e.args[1]), operands)


def tree_leaves(body: Body, e: c.Prim) -> Value:
    """The numbers of a value, in order, as one array."""
    return trees.leaves(body, visited(e), body.type_of(e.args[0]), body.term(e.args[0]))


def visited(e: c.Prim) -> trees.Leaves:
    return trees.WORDS if e.op in ("tree_map_words", "tree_words") else trees.FLOATS
