"""Syntactic values, and the uses of what is generalised without being one: it is computed where it is defined, at the
types of its uses."""

from __future__ import annotations

from collections.abc import Container, Iterator

from dpl.core import term
from dpl.core import ty as t
from dpl.core.walk import within


def is_value(e: term.Term) -> bool:
    """True for a syntactic value: its computation does nothing."""
    match e:
        case term.Lam() | term.Lit() | term.Var() | term.Extern():
            return True
        case term.Tuple(items=items) | term.ArrayLit(items=items):
            return all(is_value(i) for i in items)
        case term.Con(arg=arg):
            return arg is None or is_value(arg)
        case _:
            pass
    return False


def uses(names: Container[str], terms: list[term.Term]) -> Iterator[term.Var]:
    """The mentions of generalised names at types that are known outside of `terms`: those that mention no variable of a
    definition inside."""
    found: list[term.Var] = []
    inside: set[str] = set()
    for e in (part for one in terms for part in within(one)):
        match e:
            case term.Var() if e.name in names:
                found.append(e)
            case term.Let(params=params) | term.LetRec(params=params):
                inside.update(p.name for p in params)
            case _:
                pass
    return (use for use in found if inside.isdisjoint(variables(use.inst)))


def variables(types: tuple) -> set[str]:
    """The names of the variables in some types."""
    found, todo = set[str](), list(types)
    while todo:
        one = todo.pop()
        if isinstance(one, t.Var):
            found.add(one.name)
        elif not isinstance(one, t.Size):
            todo += t.children(one)
    return found
