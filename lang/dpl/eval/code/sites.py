"""Calls as error messages name them."""

from __future__ import annotations

from dpl.core import term as c
from dpl.eval.machine.failure import Site, shown_name


def spine(term: c.Term) -> tuple[c.Term, list[c.Term]]:
    """`f x y` as f and [x, y]."""
    args: list[c.Term] = []
    while isinstance(term, c.App):
        args.append(term.arg)
        term = term.fn
    return term, args[::-1]


def site(call: c.App) -> Site:
    """The name of the called function, if it has one, and where the call stands."""
    head, _ = spine(call)
    name = head.name if isinstance(head, (c.Var, c.Lam)) else ""
    return Site(shown_name(name), call.span)
