"""term -> the names of the variables that it mentions.

Local names are unique, so binders need no treatment.  The exception is `item`, which the size of a part of a tuple
binds wherever it is used (`component` of `types/state/checks.py`): what arms bind is no mention.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from dpl.core import term as c
from dpl.core.names import names_of


class Mentioned:
    """Caches the names that each function mentions, because nested functions are queried repeatedly."""

    def __init__(self) -> None:
        self._by_function: dict[int, tuple[c.Lam, frozenset[str]]] = {}

    def by(self, function: c.Lam) -> frozenset[str]:
        found = self._by_function.get(id(function))
        if found is None:
            names: set[str] = set()
            bound: set[str] = set()
            todo: list = [function.body]
            while todo:
                self._visit(todo.pop(), names, bound, todo)
            found = self._by_function[id(function)] = function, frozenset(names - bound)
        return found[1]

    def _visit(self, part, names: set[str], bound: set[str], todo: list) -> None:
        if isinstance(part, c.Arm):
            bound.update(names_of(part.pattern))
        match part:
            case c.Var(name=name):
                names.add(name)
            case c.Lam():
                names |= self.by(part)
            case tuple():
                todo.extend(part)
            case c.Node() | c.Arm():
                todo.extend(getattr(part, slot) for slot in SLOTS[type(part)])
            case _:  # a name, a number or None
                pass


def names_in(body: c.Term) -> frozenset[str]:
    """The names that a closed term mentions."""
    return Mentioned().by(c.Lam(body.span, body.ty, "", body))


def mentions(items: Iterable[c.Def | c.Do | c.Expect], name: str) -> bool:
    """Whether items mention a global."""
    return any(name in names_in(item.body) for item in items)


def _slots(shape: type) -> tuple[str, ...]:
    return tuple(name for name in shape.__match_args__ if name not in ("span", "ty", "pattern", "inst", "params"))


SLOTS = {shape: _slots(shape) for shape in (*get_args(c.Term), c.Arm)}
