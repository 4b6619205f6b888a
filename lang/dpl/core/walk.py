"""The direct subterms of a core term, all of them, and copies of a term with other subterms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dpl.core import term
from dpl.core.ty import Ty
from dpl.node import replace


def subterms(t: term.Term) -> tuple[term.Term, ...]:
    """The direct subterms, in the order in which they stand in the text."""
    parts = PARTS.get(type(t))
    return parts(t) if parts else ()


def parts_of_match(t: term.Match) -> tuple[term.Term, ...]:
    return (t.scrutinee, *(part for arm in t.arms for part in (arm.guard, arm.body) if part is not None))


# The parts of a term by its form, in the order in which they stand in the text.  Forms without parts are not here.
PARTS: dict[type, Callable[[Any], tuple[term.Term, ...]]] = {
    term.Var: lambda t: tuple([n for one in t.sizes for n in one]) if t.sizes else (),
    term.Lam: lambda t: (t.body,),
    term.App: lambda t: (t.fn, t.arg),
    term.Let: lambda t: (t.rhs, t.body),
    term.LetRec: lambda t: (*[value for _, value in t.bindings], t.body),
    term.Tuple: lambda t: t.items,
    term.Con: lambda t: (t.arg,) if t.arg is not None else (),
    term.Field: lambda t: (t.record,),
    term.Update: lambda t: (t.record, *[value for _, value in t.fields]),
    term.ArrayLit: lambda t: t.items,
    term.Prim: lambda t: t.args,
    term.If: lambda t: (t.cond, t.then, t.else_),
    term.Match: parts_of_match,
    term.For: lambda t: (t.init, t.count, t.body),
    term.While: lambda t: (t.init, t.cond, t.body),
    term.Build: lambda t: (t.count, t.body),
    term.Shift: lambda t: (t.body,),
    term.Reset: lambda t: (t.body,),
    term.Check: lambda t: (t.body, *[part for a, b, _ in t.pairs for part in (a, b)]),
}


Value = Callable[[Ty, term.Value], term.Value]


def within(t: term.Term) -> Iterator[term.Term]:
    """A term and all its parts."""
    stack = [t]
    while stack:
        t = stack.pop()
        stack += subterms(t)[::-1]
        yield t


def same_value(_ty: Ty, value: term.Value) -> term.Value:
    return value


def changed(  # noqa: C901 -- one case per form
    t: term.Term, go: Callable[[term.Term], term.Term], ty: Callable[[Ty], Ty], value: Value = same_value
) -> term.Term:
    """`t` with its types mapped by `ty`, its direct subterms by `go`, in the order in which they stand in the text, and
    the literal of a Lit by `value`, which gets the new type."""
    u = ty(t.ty)
    match t:
        case term.Var(span, _, name, inst, sizes):
            return term.Var(span, u, name, inst, tuple([tuple([go(n) for n in one]) for one in sizes]))
        case term.Lit(span, _, old):
            return term.Lit(span, u, value(u, old))
        case term.Extern() | term.Hole():
            return replace(t, ty=u)
        case term.Prim(span, _, op, args):
            return term.Prim(span, u, op, tuple([go(a) for a in args]))
        case term.App(span, _, fn, arg):
            return term.App(span, u, go(fn), go(arg))
        case term.Lam(span, _, param, body, name):
            return term.Lam(span, u, param, go(body), name)
        case term.Let(span, _, name, params, rhs, body):
            return term.Let(span, u, name, params, go(rhs), go(body))
        case term.LetRec(span, _, params, bindings, body):
            return term.LetRec(span, u, params, tuple([(name, go(rhs)) for name, rhs in bindings]), go(body))
        case term.Tuple(span, _, items) | term.ArrayLit(span, _, items):
            return type(t)(span, u, tuple([go(i) for i in items]))
        case term.Con(span, _, name, tag, arg):
            return term.Con(span, u, name, tag, arg and go(arg))
        case term.Field(span, _, record, index):
            return term.Field(span, u, go(record), index)
        case term.Update(span, _, record, fields):
            return term.Update(span, u, go(record), tuple([(index, go(value)) for index, value in fields]))
        case term.If(span, _, cond, then, else_):
            return term.If(span, u, go(cond), go(then), go(else_))
        case term.Match(span, _, scrutinee, arms):
            return term.Match(span, u, go(scrutinee), tuple([changed_arm(a, go, ty, value) for a in arms]))
        case term.For(span, _, state, init, index, count, body):
            return term.For(span, u, state, go(init), index, go(count), go(body))
        case term.While(span, _, state, init, cond, body):
            return term.While(span, u, state, go(init), go(cond), go(body))
        case term.Build(span, _, index, count, body):
            return term.Build(span, u, index, go(count), go(body))
        case term.Shift(span, _, name, body):
            return term.Shift(span, u, name, go(body))
        case term.Reset(span, _, body):
            return term.Reset(span, u, go(body))
        case term.Check(span, _, name, body, pairs):
            done = tuple([(go(a), go(b), what) for a, b, what in pairs])
            return term.Check(span, u, name, go(body), done)


def changed_arm(
    arm: term.Arm, go: Callable[[term.Term], term.Term], ty: Callable[[Ty], Ty], value: Value = same_value
) -> term.Arm:
    guard = None if arm.guard is None else go(arm.guard)
    return term.Arm(arm.span, changed_pattern(arm.pattern, ty, value), guard, go(arm.body))


def changed_pattern(p: term.Pattern, ty: Callable[[Ty], Ty], value: Value = same_value) -> term.Pattern:
    """`p` with its types mapped by `ty` and its literals by `value`."""
    u = ty(p.ty)
    match p:
        case term.PWild():
            return term.PWild(u)
        case term.PVar(_, name):
            return term.PVar(u, name)
        case term.PLit(_, old):
            return term.PLit(u, value(u, old))
        case term.PTuple(_, items):
            return term.PTuple(u, tuple([changed_pattern(i, ty, value) for i in items]))
        case term.PCon(_, name, tag, arg):
            return term.PCon(u, name, tag, None if arg is None else changed_pattern(arg, ty, value))
        case term.PArray(_, items):
            return term.PArray(u, tuple([changed_pattern(i, ty, value) for i in items]))
        case term.PAs(_, inner, name):
            return term.PAs(u, changed_pattern(inner, ty, value), name)
        case term.POr(_, left, right):
            return term.POr(u, changed_pattern(left, ty, value), changed_pattern(right, ty, value))
