"""term -> the names of variables that it mentions (local names are unique, so nothing need be known of binders)."""

from __future__ import annotations

from dpl.core import term as c


class Mentioned:
    """Remembers what functions mention, as nested ones are asked about again and again."""

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
            case _:  # a name, a number, nothing
                pass


def _slots(shape: type) -> tuple[str, ...]:
    return tuple(name for name in shape.__match_args__ if name not in ("span", "ty", "pattern", "inst", "params"))


SLOTS = {shape: _slots(shape) for shape in (*c.Term.__args__, c.Arm)}
