"""term -> the names of the variables that it mentions.  Local names are unique, so binders need no treatment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from dpl.core import term as c


class Mentioned:
    """Caches the names that each function mentions, because nested functions are queried repeatedly."""

    def __init__(self) -> None:
        self._by_function: dict[int, tuple[c.Lam, frozenset[str]]] = {}

    def by(self, function: c.Lam) -> frozenset[str]:
        found = self._by_function.get(id(function))
        if found is None:
            names: set[str] = set()
            todo: list = [function.body]
            while todo:
                self._visit(todo.pop(), names, todo)
            found = self._by_function[id(function)] = function, frozenset(names)
        return found[1]

    def _visit(self, part, names: set[str], todo: list) -> None:
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


def mentions(items: Iterable[c.Def | c.Do | c.Expect], name: str) -> bool:
    """Whether items mention a global."""
    known = Mentioned()
    return any(name in known.by(c.Lam(item.body.span, item.body.ty, "", item.body)) for item in items)


def _slots(shape: type) -> tuple[str, ...]:
    return tuple(name for name in shape.__match_args__ if name not in ("span", "ty", "pattern", "inst", "params"))


SLOTS = {shape: _slots(shape) for shape in (*get_args(c.Term), c.Arm)}
