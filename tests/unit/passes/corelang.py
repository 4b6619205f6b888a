"""Core by hand, with types worked out where they follow: what the tests of the passes are written in."""

from __future__ import annotations

from dpl.core import term as c
from dpl.core import ty as t
from dpl.source import NOWHERE
from dplc.flat import term as f
from dplc.flat.interp import run as evaluate
from dplc.flat.verify import verify
from dplc.passes.closures.lambda_sets import solve
from dplc.passes.control.cps import explicit_control
from dplc.passes.lower.lower import lower
from dplc.passes.specialise.mono import monomorphise

I64, F64, BOOL, STR, UNIT = t.I64, t.F64, t.BOOL, t.STRING, t.UNIT
A, B = t.Var("a"), t.Var("b")
ANY = t.Size()


def fn(*types: t.Ty) -> t.Ty:
    *args, result = types
    for arg in reversed(args):
        result = t.Fn(arg, t.PURE, result)
    return result


def arr(elem: t.Ty) -> t.Ty:
    return t.Arr(elem, ANY)


def lit(value) -> c.Term:
    ty = {bool: BOOL, int: I64, float: F64, str: STR}[type(value)]
    return c.Lit(NOWHERE, ty, value)


def var(name: str, ty: t.Ty, *inst) -> c.Term:
    return c.Var(NOWHERE, ty, name, inst)


def term(x) -> c.Term:
    return x if isinstance(x, c.Node) else lit(x)


def lam(param: str, ty: t.Ty, body, name: str = "") -> c.Term:
    body = term(body)
    return c.Lam(NOWHERE, fn(ty, body.ty), param, body, name)


def app(f: c.Term, *args) -> c.Term:
    for arg in args:
        f = c.App(NOWHERE, f.ty.result, f, term(arg))
    return f


def prim(op: str, ty: t.Ty, *args) -> c.Term:
    return c.Prim(NOWHERE, ty, op, tuple(map(term, args)))


def add(a, b) -> c.Term:
    return prim("add", term(a).ty, a, b)


def mul(a, b) -> c.Term:
    return prim("mul", term(a).ty, a, b)


def sub(a, b) -> c.Term:
    return prim("sub", term(a).ty, a, b)


def equal(a, b) -> c.Term:
    return prim("eq", BOOL, a, b)


def if_(cond, then, else_) -> c.Term:
    then = term(then)
    return c.If(NOWHERE, then.ty, term(cond), then, term(else_))


def let(name: str, rhs, body, *params: t.Var) -> c.Term:
    body = term(body)
    return c.Let(NOWHERE, body.ty, name, params, term(rhs), body)


def letrec(bindings: dict[str, c.Term], body, *params: t.Var) -> c.Term:
    body = term(body)
    return c.LetRec(NOWHERE, body.ty, params, tuple(bindings.items()), body)


def tup(*items) -> c.Term:
    parts = tuple(map(term, items))
    return c.Tuple(NOWHERE, t.Tup(tuple(p.ty for p in parts)), parts)


def array(*items) -> c.Term:
    parts = tuple(map(term, items))
    return c.ArrayLit(NOWHERE, arr(parts[0].ty), parts)


def con(ty: t.Ty, name: str, tag: int, arg=None) -> c.Term:
    return c.Con(NOWHERE, ty, name, tag, None if arg is None else term(arg))


def field(ty: t.Ty, record: c.Term, index: int) -> c.Term:
    return c.Field(NOWHERE, ty, record, index)


def list_(elem: t.Ty, *items) -> c.Term:
    ty = t.list_of(elem)
    out = con(ty, "[]", 0)
    for item in reversed(items):
        out = con(ty, "::", 1, tup(item, out))
    return out


def match(scrutinee, *arms) -> c.Term:
    """Arms are (pattern, body) or (pattern, guard, body)."""
    made = [c.Arm(NOWHERE, arm[0], term(arm[1]) if len(arm) == 3 else None, term(arm[-1])) for arm in arms]
    return c.Match(NOWHERE, made[0].body.ty, term(scrutinee), tuple(made))


def pvar(name: str, ty: t.Ty) -> c.Pattern:
    return c.PVar(ty, name)


def plit(value) -> c.Pattern:
    return c.PLit(lit(value).ty, value)


def ptup(*items: c.Pattern) -> c.Pattern:
    return c.PTuple(t.Tup(tuple(p.ty for p in items)), items)


def pcon(ty: t.Ty, name: str, tag: int, arg: c.Pattern | None = None) -> c.Pattern:
    return c.PCon(ty, name, tag, arg)


def wild(ty: t.Ty) -> c.Pattern:
    return c.PWild(ty)


def nil(elem: t.Ty) -> c.Pattern:
    return pcon(t.list_of(elem), "[]", 0)


def cons(head: c.Pattern, tail: c.Pattern) -> c.Pattern:
    return pcon(t.list_of(head.ty), "::", 1, ptup(head, tail))


def define(name: str, body, *params: t.Var) -> c.Def:
    body = term(body)
    return c.Def(name, params, body.ty, body)


def show(*terms) -> list[c.Do]:
    return [c.Do(prim("print", UNIT, e)) for e in terms]


def program(*items, datas: tuple[c.Data, ...] = (), library: tuple[c.Def, ...] = ()) -> c.Program:
    return c.Program(list(items), {d.name: d for d in library}, {d.name: d for d in datas})


def lower_program(program: c.Program) -> f.Program:
    """Core -> flat, through all stages between them."""
    return lower(solve(explicit_control(monomorphise(program))))


def flat(*items, **more):
    return verify(lower_program(program(*items, **more)))


def output(*items, **more) -> list[str]:
    """The lines that a program prints."""
    return evaluate(flat(*items, **more)).splitlines()
