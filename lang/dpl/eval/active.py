"""Differentiating one scalar operation: the highest level among its operands decides, forward or reverse.

Every application of `jvp` or `vjp` has a level of its own, higher than all before it.  At its level a float is a
`Dual` (forward: number and tangent) or a `Node` (reverse: number and how it came about).  An operation strips the
highest level off its operands, computes on what is left (which may be tagged again: recursion), and puts the level
back on.  So levels never mix, and forward and reverse nest in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpl.eval.value import Tagged, Value
from dpl.prims import contribution


@dataclass(slots=True)
class Active:
    """An operation that can be differentiated, named as its row.  `forward` and `reverse` are the worlds of its result's and of its
    operands' scalar type (different for conversions only)."""

    name: str
    apply: Callable
    rules: tuple[Callable | None, ...]
    forward: object
    reverse: object


class Dual(Tagged):
    """Forward: the number and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, level: int, primal: Value, tangent: Value) -> None:
        self.level = level
        self.primal = primal
        self.tangent = tangent


class Node(Tagged):
    """Reverse: the number, the step that made it, and that step's operands at this level.  `height` orders the graph:
    above all operands."""

    __slots__ = ("step", "parents", "height")

    def __init__(self, level: int, primal: Value, step, parents: tuple, height: int) -> None:
        self.level = level
        self.primal = primal
        self.step = step
        self.parents = parents
        self.height = height


class Step:
    """A scalar operation as it was performed: what its rules need."""

    __slots__ = ("active", "args", "result", "places")

    def __init__(self, active: Active, args: tuple, result: Value, places: tuple[int, ...]) -> None:
        self.active = active
        self.args = args
        self.result = result
        self.places = places  # which operands the node's parents are

    def pull(self, cotangent: Value) -> list:
        """The cotangents of the parents."""
        active, args, result = self.active, self.args, self.result
        return [contribution(active.reverse, active.rules[i], cotangent, args, result) for i in self.places]


def differentiate(active: Active, args: tuple) -> Value:
    """Apply an operation to operands of which at least one is tagged."""
    level = max(a.level for a in args if isinstance(a, Tagged))
    mine = [i for i, a in enumerate(args) if isinstance(a, Tagged) and a.level == level and active.rules[i]]
    primals = tuple(a.primal if isinstance(a, Tagged) and a.level == level else a for a in args)
    result = active.apply(*primals)
    if not mine:
        return result
    if isinstance(args[mine[0]], Node):
        parents = tuple(args[i] for i in mine)
        step = Step(active, primals, result, tuple(mine))
        return Node(level, result, step, parents, 1 + max(p.height for p in parents))
    tangent = None
    for i in mine:
        part = contribution(active.forward, active.rules[i], args[i].tangent, primals, result)
        tangent = part if tangent is None else active.forward.apply("add", tangent, part)
    return Dual(level, result, tangent)


def at_level(x: Value, level: int) -> Value:
    """A leaf without the tags of levels above: those derivatives are over, the value only escaped from them."""
    while isinstance(x, Tagged) and x.level > level:
        x = x.primal
    return x


def primal_at(x: Value, level: int) -> Value:
    x = at_level(x, level)
    return x.primal if isinstance(x, Tagged) and x.level == level else x
