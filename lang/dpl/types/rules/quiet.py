"""Terms without effects.

By the value restriction these generalise, as values do: they create no reference, capture nothing and print nothing.
The steps of a comprehension may be done in another order if they have no effects (`in_any_order`)."""

from __future__ import annotations

from dpl.core import term, ty
from dpl.core.walk import subterms
from dpl.prims.structural import EFFECTS
from dpl.types.solve.meta import Meta, Type, prune
from dpl.types.state.context import Context
from dpl.types.state.deferred import Deferred

LOUD = frozenset(row.name for row in EFFECTS) - {"error", "assert", "refuted", "exit"}


def is_quiet(cx: Context, t: term.Term) -> bool:
    """True if nothing in the term creates a reference, captures or prints, even when it is a function and called."""
    stack = [t]
    while stack:
        t = stack.pop()
        match t:
            case term.Shift() | term.Reset() | term.Extern():
                return False
            case Deferred(inside=inside):
                stack += inside
                continue
            case term.Prim(op=op) if op in LOUD:
                return False
            case term.Var(name=name) if name in cx.loud:
                return False
            case _:
                pass
        stack += subterms(t)
    return True


def in_any_order(cx: Context, first: term.Term, second: term.Term) -> bool:
    """True if `first` of all steps may be done before `second` of any step.  If both fail, another error is told then.

    Either `first` only compares scalars, which neither fails nor depends on what `second` changes.  Or both are quiet
    and call known functions only: of an unknown one, nothing tells whether it prints."""
    return compares(first) or all(is_quiet(cx, t) and calls_known(cx, t) for t in (first, second))


COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "not"))


def compares(t: term.Term) -> bool:
    """True for comparisons of scalar variables and literals, and for what joins them."""
    match t:
        case term.If(_, _, cond, then, else_):
            return compares(cond) and compares(then) and compares(else_)
        case term.Prim(_, _, op, args):
            return op in COMPARISONS and all(map(compares, args))
        case term.Var() | term.Lit():
            return is_atomic(t.ty)
        case _:
            return False


def is_atomic(t: Type) -> bool:
    t = prune(t)
    return isinstance(t, ty.Con) and (t in (ty.BOOL, ty.STRING) or t.name in (*ty.INTS, *ty.FLOATS))


def calls_known(cx: Context, t: term.Term) -> bool:
    """True if no variable in the term but those of the top level is a function or has one inside."""
    stack = [t]
    while stack:
        t = stack.pop()
        if isinstance(t, term.Var) and t.name.rpartition(".")[2].isdigit() and may_hold_functions(cx, t.ty):
            return False
        stack += t.inside if isinstance(t, Deferred) else subterms(t)
    return True


def may_hold_functions(cx: Context, t: Type) -> bool:
    """True if a value of this type may be a function, or have one inside.  One of a variable type may, but only who
    made it can call that."""
    stack, seen = [prune(t)], set()
    while stack:
        match stack.pop():
            case ty.Fn():
                return True
            case Meta() as free:
                if not free.classes:
                    return True
            case ty.Arr(elem=elem):
                stack.append(prune(elem))
            case ty.Tup(items=items):
                stack += map(prune, items)
            case ty.Con(name=name, args=args):
                stack += [prune(arg) for arg in args if not isinstance(arg, ty.Size)]
                if name in cx.datas and name not in seen:
                    seen.add(name)
                    stack += [prune(arg) for _, arg in cx.datas[name].cases if arg is not None]
            case _:
                pass
    return False
