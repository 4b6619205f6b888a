"""What terms are compiled to, and what the compiler knows of the names in scope.

Environments are tuples: the `Types` of the activation first, then captured values, arguments and local variables in the
order of their binding.  A binding makes a new, longer tuple, so environments may be shared by closures, frames and
continuations.  Local names are unique within a definition; where each lies is known when compiling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpl.core.shapes import Needs
from dpl.eval.value import Value
from dpl.node import node

Direct = Callable[[tuple], Value]
Run = Callable[[tuple, tuple], tuple]


class Code:
    """`run(env, k)` is a step of the machine.  `direct(env)`, if there is one, gives the value at once: the term calls
    no unknown function and does not capture its continuation."""

    __slots__ = ("direct", "run")

    def __init__(self, run: Run, direct: Direct | None = None) -> None:
        self.run = run
        self.direct = direct


def at_once(direct: Direct) -> Code:
    def run(env: tuple, k: tuple) -> tuple:
        return k[0], direct(env), k

    return Code(run, direct)


@node
class Scope:
    """`slots` says where each local name lies (shared by all scopes of a function), `polys` which of them are
    generalised, over what, and which sizes they must be told; `size` is the length of the environment here."""

    slots: dict[str, int]
    polys: dict[str, Needs]
    size: int

    def bind(self, *names: str, needs: Needs | None = None) -> Scope:
        for i, name in enumerate(names):
            self.slots[name] = self.size + i
            if needs:
                self.polys[name] = needs
        return Scope(self.slots, self.polys, self.size + len(names))


def root() -> Scope:
    """At the top of a definition: nothing but the types."""
    return Scope({}, {}, 1)


class Poly:
    """A generalised local value: made for each instance on demand."""

    __slots__ = ("made", "make")

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self.make = make
        self.made: dict = {}

    def at(self, types) -> Value:
        if types not in self.made:
            self.made[types] = self.make(types)
        return self.made[types]
