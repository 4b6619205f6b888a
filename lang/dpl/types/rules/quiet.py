"""The value restriction: values generalise, and terms that create no reference, capture nothing and print nothing."""

from __future__ import annotations

from dpl.core import term
from dpl.core.walk import subterms
from dpl.prims.structural import EFFECTS
from dpl.types.state.context import Context
from dpl.types.state.deferred import Deferred

LOUD = frozenset(row.name for row in EFFECTS) - {"error", "assert", "refuted", "exit"}


def is_value(t: term.Term) -> bool:
    """True for a syntactic value: its computation does nothing."""
    match t:
        case term.Lam() | term.Lit() | term.Var() | term.Extern():
            return True
        case term.Tuple(items=items) | term.ArrayLit(items=items):
            return all(is_value(i) for i in items)
        case term.Con(arg=arg):
            return arg is None or is_value(arg)
        case _:
            pass
    return False


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
