"""The value restriction: values generalise, and terms that create no reference, capture nothing and print nothing."""

from __future__ import annotations

from dpl.core import term
from dpl.core.walk import subterms
from dpl.prims.structural import EFFECTS
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
