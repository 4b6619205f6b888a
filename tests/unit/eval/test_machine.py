"""The machine on hand-built core: depth, tail calls, captured continuations, derivatives."""

from __future__ import annotations

import io
import math

import pytest
from dpl.core import term as c
from dpl.core import ty as t
from dpl.diagnostics import DplError
from dpl.eval.run import Interpreter
from dpl.eval.values.value import Array
from dpl.source import NOWHERE

INT, F = t.I64, t.F64


def fn(a: t.Ty, b: t.Ty) -> t.Fn:
    return t.Fn(a, t.PURE, b)


def var(name: str, ty: t.Ty = F) -> c.Var:
    return c.Var(NOWHERE, ty, name)


def lit(value) -> c.Lit:
    return c.Lit(NOWHERE, t.BOOL if isinstance(value, bool) else INT if isinstance(value, int) else F, value)


def lam(name: str, body: c.Term, arg: t.Ty = F) -> c.Lam:
    return c.Lam(NOWHERE, fn(arg, body.ty), name, body, "f")


def app(f: c.Term, *args: c.Term) -> c.Term:
    for arg in args:
        f = c.App(NOWHERE, f.ty.result, f, arg)
    return f


def prim(op: str, *args: c.Term, ty: t.Ty | None = None) -> c.Prim:
    return c.Prim(NOWHERE, ty or args[0].ty, op, args)


def if_(cond: c.Term, then: c.Term, else_: c.Term) -> c.If:
    return c.If(NOWHERE, then.ty, cond, then, else_)


def let(name: str, rhs: c.Term, body: c.Term) -> c.Let:
    return c.Let(NOWHERE, body.ty, name, (), rhs, body)


def rec(name: str, rhs: c.Term, body: c.Term) -> c.LetRec:
    return c.LetRec(NOWHERE, body.ty, (), ((name, rhs),), body)


def shift(name: str, body: c.Term, ty: t.Ty) -> c.Shift:
    return c.Shift(NOWHERE, ty, name, body)


def reset(body: c.Term) -> c.Reset:
    return c.Reset(NOWHERE, body.ty, body)


def value(term: c.Term):
    return Interpreter(c.Program(), out=io.StringIO()).value(term)


def grad(f: c.Term, x: c.Term) -> c.Term:
    pair = t.Tup((F, fn(F, x.ty)))
    both = c.Prim(NOWHERE, pair, "vjp", (f, x))
    pattern = c.PTuple(pair, (c.PWild(F), c.PVar(fn(F, x.ty), "pb")))
    return c.Match(NOWHERE, x.ty, both, (c.Arm(NOWHERE, pattern, None, app(var("pb", fn(F, x.ty)), lit(1.0))),))


def diff(f: c.Term, x: c.Term) -> c.Term:
    pair = t.Tup((F, F))
    both = c.Prim(NOWHERE, pair, "jvp", (f, x, lit(1.0)))
    pattern = c.PTuple(pair, (c.PWild(F), c.PVar(F, "dy")))
    return c.Match(NOWHERE, F, both, (c.Arm(NOWHERE, pattern, None, var("dy")),))


def count(step: c.Term) -> c.Term:
    """let rec go n = if n = 0 then 0 else `step` in go 300000"""
    body = if_(prim("eq", var("n", INT), lit(0), ty=t.BOOL), lit(0), step)
    return rec("go", lam("n", body, INT), app(var("go", fn(INT, INT)), lit(300_000)))


GO = app(var("go", fn(INT, INT)), prim("sub", var("n", INT), lit(1)))


def test_arithmetic_wraps():
    assert value(prim("add", lit(2**63 - 1), lit(1))) == -(2**63)


def test_deep_recursion():
    assert value(count(prim("add", lit(1), GO))) == 300_000


def test_tail_calls():
    assert value(count(GO)) == 0


def test_multi_shot():
    """reset (10 + shift k -> k 1 + k 2) = 23"""
    k = var("k", fn(INT, INT))
    body = prim("add", app(k, lit(1)), app(k, lit(2)))
    assert value(reset(prim("add", lit(10), shift("k", body, INT)))) == 23


def test_nested_prompts():
    """reset (2 * reset (1 + shift h -> shift f -> h (f 3))) = 8"""
    h, f = var("h", fn(INT, INT)), var("f", fn(INT, INT))
    inner = shift("h", shift("f", app(h, app(f, lit(3))), INT), INT)
    assert value(reset(prim("mul", lit(2), reset(prim("add", lit(1), inner))))) == 8


SQUARE = lam("x", prim("mul", var("x"), var("x")))


@pytest.mark.parametrize("outer", [grad, diff])
@pytest.mark.parametrize("inner", [grad, diff])
def test_no_perturbation_confusion(outer, inner):
    """D (fun x -> x * D (fun y -> x + y) 1) 1 = 1"""
    derived = inner(lam("y", prim("add", var("x"), var("y"))), lit(1.0))
    assert value(outer(lam("x", prim("mul", var("x"), derived)), lit(1.0))) == 1.0
    assert value(outer(lam("x", inner(SQUARE, var("x"))), lit(3.0))) == 2.0


def test_gradient_of_an_array():
    xs = c.ArrayLit(NOWHERE, t.Arr(F, t.Size(2)), (lit(3.0), lit(4.0)))
    found = value(grad(lam("x", prim("dot", var("x", xs.ty), var("x", xs.ty), ty=F), xs.ty), xs))
    assert isinstance(found, Array) and found.data == [6.0, 8.0]


def test_errors_have_a_code():
    with pytest.raises(DplError) as caught:
        value(prim("div", lit(1), lit(0)))
    assert caught.value.diagnostics[0].title == "division by zero"


def test_floats_follow_ieee():
    assert value(prim("div", lit(1.0), lit(0.0))) == math.inf
