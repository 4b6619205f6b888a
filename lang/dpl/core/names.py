"""The variables that a term mentions, and those that are bound inside of it."""

from __future__ import annotations

from collections.abc import Iterator

from dpl.core import term as c
from dpl.core.walk import within


def mentioned(e: c.Term) -> Iterator[str]:
    """The names of the variables that a term mentions, each as often as it does, bound ones included."""
    return (part.name for part in within(e) if isinstance(part, c.Var))


def bound(e: c.Term) -> set[str]:
    """The variables that are bound inside a term."""
    found: set[str] = set()
    for part in within(e):
        match part:
            case c.Let(name=name) | c.Check(name=name) | c.Shift(name=name):
                found.add(name)
            case c.Lam(param=name) | c.While(state=name) | c.Build(index=name):
                found.add(name)
            case c.For(state=state, index=index):
                found |= {state, index}
            case c.LetRec(bindings=bindings):
                found |= {name for name, _ in bindings}
            case c.Match(arms=arms):
                found |= {name for arm in arms for name in names_of(arm.pattern)}
            case _:
                pass
    return found


def names_of(p: c.Pattern) -> list[str]:
    """The variables that a pattern binds."""
    match p:
        case c.PVar(_, name):
            return [name]
        case c.PAs(_, inner, name):
            return [name, *names_of(inner)]
        case c.PTuple(_, items) | c.PArray(_, items):
            return [name for item in items for name in names_of(item)]
        case c.PCon(_, _, _, arg):
            return [] if arg is None else names_of(arg)
        case c.POr(_, left, _):
            return names_of(left)
        case _:
            return []
