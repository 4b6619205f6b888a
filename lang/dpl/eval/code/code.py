"""The code that terms are compiled to, and the compile-time scope.

Environments are tuples: the `Types` of the activation first, then captured values, arguments and local variables in the
order of their binding.  A binding makes a new, longer tuple, so closures, frames and continuations may share
environments.  Local names are unique within a definition; the slot of each is known at compile time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dpl.core.shapes import Needs
from dpl.eval.values.value import Closure, Value
from dpl.node import node, replace

if TYPE_CHECKING:
    from dpl.eval.machine.machine import FunctionCode

Direct = Callable[[tuple], Value]
Run = Callable[[tuple, tuple], tuple]
ALONE: Mapping[str, FunctionCode] = {}


class Code:
    """Compiled code of a term.  `run(env, k)` is a step of the machine.  `direct(env)` returns the value at once; it
    exists if the term calls no unknown function and does not capture its continuation."""

    __slots__ = ("direct", "run")

    def __init__(self, run: Run, direct: Direct | None = None) -> None:
        self.run = run
        self.direct = direct


def at_once(direct: Direct) -> Code:
    """Code that computes its value without a step of the machine of its own."""

    def run(env: tuple, k: tuple) -> tuple:
        return k[0], direct(env), k

    return Code(run, direct)


class Poly:
    """A generalised local value; each instance is made on demand."""

    __slots__ = ("made", "make")

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self.make = make
        self.made: dict = {}

    def at(self, types) -> Value:
        """The value at these types, which is made once."""
        if types not in self.made:
            self.made[types] = self.make(types)
        return self.made[types]


@node
class Scope:
    """The local names at one point of a function.

    slots    the index of each local name in the environment (all scopes of a function share this dict)
    polys    the generalised ones: their type variables, and which sizes they need
    size     the length of the environment here
    group    the recursive functions if this is the body of one of them: closures over the first `held` values of the
             environment
    recursive  the names of the functions of the recursions that this is a part of"""

    slots: dict[str, int]
    polys: dict[str, Needs]
    size: int
    group: Mapping[str, FunctionCode]
    held: int
    recursive: frozenset[str] = frozenset()

    def bind(self, *names: str, needs: Needs | None = None) -> Scope:
        """The scope with more local names, in the next places of the environment."""
        for i, name in enumerate(names):
            self.slots[name] = self.size + i
            if needs:
                self.polys[name] = needs
        return replace(self, size=self.size + len(names))

    def has(self, name: str) -> bool:
        """True for a local name."""
        return name in self.slots or name in self.group

    def local(self, name: str) -> Direct:
        """The value of a local name, a Poly if it is generalised.  Members of a group call each other at their own
        types."""
        if name in self.slots:
            return itemgetter(self.slots[name])
        code, held = self.group[name], self.held
        return lambda env: Closure(code, env[:held])

    def taking(self, names: Sequence[str]) -> Callable[[tuple], tuple]:
        """A function that takes the types and the values of these names from an environment."""
        if not names:
            return lambda env: env[:1]
        if all(name in self.slots for name in names):
            return itemgetter(0, *(self.slots[name] for name in names))
        parts = [itemgetter(0), *map(self.local, names)]
        return lambda env: tuple([part(env) for part in parts])

    def inside(self, captured: Sequence[str], group: Mapping[str, FunctionCode] = ALONE) -> Scope:
        """The scope of a function with these captured names; the function may belong to a recursive group."""
        polys = {name: self.polys[name] for name in captured if name in self.polys}
        recursive = self.recursive.union(group)
        return Scope({}, polys, 1, group, 1 + len(captured), recursive).bind(*captured)


def maker(code: FunctionCode, generalised: bool) -> Callable[[tuple], Closure | Poly]:
    """A function that makes a closure from its captured values."""
    if generalised:
        return lambda held: Poly(lambda types: Closure(code, (types, *held[1:])))
    return lambda held: Closure(code, held)


def root(group: Collection[str] = ()) -> Scope:
    """The scope at the top of a definition, one of a recursive `group`: the environment holds only the types."""
    return Scope({}, {}, 1, ALONE, 1, frozenset(group))
