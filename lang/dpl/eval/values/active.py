"""Differentiating one scalar operation: the tags of the highest level among its operands decide the mode.

Every application of `jvp`, `vjp` or `taylor` has a level of its own, higher than all before it.  At its level a float
is a `Dual` (forward: number and tangent), a `Jet` (number and Taylor coefficients, series.py) or a `Node` (reverse:
number and the step that computed it).  An operation strips the highest level off its operands, computes on the numbers
below (which may carry tags of lower levels: recursion), and puts the level back on.  So levels never mix, and forward
and reverse mode nest in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dpl.eval.values.series import Jet, World, solved
from dpl.eval.values.value import Tagged, Value, number
from dpl.prims import contribution

Rule: TypeAlias = Callable
CHOOSE = frozenset({"max", "min", "clip", "select", "relu"})  # rows that return one of their operands


class Active:
    """A differentiable operation, named as its row of the table.  `forward` is the world of the result's scalar type,
    `reverse` that of the operands' (they differ only for conversions).  `sharing` is the same with other rules, for
    where all operands have tags."""

    __slots__ = ("_plain", "apply", "chooses", "forward", "name", "reverse", "rules", "sharing")

    def __init__(
        self, name: str, apply: Callable, rules: Sequence[Rule | None], forward: World, reverse: World
    ) -> None:
        self.name = name
        self.chooses = name in CHOOSE
        self.apply = apply
        self.rules = rules
        self.forward = forward
        self.reverse = reverse
        self.sharing = self
        exact = forward.kind == reverse.kind == "f64"
        self._plain = [rule if rule and exact and _operators_only(rule, len(rules)) else None for rule in rules]

    def flows(self, i: int, args: tuple, result: Value) -> bool:
        """True if the result depends on operand `i`.  Dropping a contribution avoids NaN from zero times an infinite
        slope."""
        rule = self.rules[i]
        if not rule or not self.chooses:
            return rule is not None
        return number(contribution(self.forward, rule, 1.0, args, result)) != 0.0

    def contribution(self, world: World, i: int, t: Value, args: tuple, result: Value) -> Value:
        """The contribution of operand `i`'s tangent `t` to the result's tangent, or of the result's cotangent `t` to
        operand `i`'s cotangent."""
        plain = self._plain[i]
        if plain:
            try:
                return plain(t, args, result)
            except ZeroDivisionError:  # here Python differs from IEEE 754
                pass
        rule = self.rules[i]
        assert rule
        return contribution(world, rule, t, args, result)


def _operators_only(rule: Rule, arity: int) -> bool:
    """True if a rule uses only arithmetic operators: it can then be called with f64 numbers, which have these."""
    try:
        rule(0.5, (0.5,) * arity, 0.5)
    except AttributeError:
        return False
    return arity <= 2


class Dual(Tagged):
    """Forward mode: the number and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, level: int, primal: Value, tangent: Value) -> None:
        self.level = level
        self.primal = primal
        self.tangent = tangent


class Here:
    """Where the program is: a debugger keeps it up to date, and every Node remembers it."""

    __slots__ = ("place", "visit")

    def __init__(self) -> None:
        self.place: Any = None
        self.visit: Any = None


HERE = Here()


class Node(Tagged):
    """Reverse mode: the number and the step that computed it.  The step is an Active with operands `args`; those at
    `places` are the numbers of the `parents` (tape.py has other steps).  `height` is above that of all parents.
    `place` and `visit` say where it was made (`Here`); an input has no visit."""

    __slots__ = ("args", "height", "parents", "place", "places", "step", "visit")

    def __init__(
        self, level: int, primal: Value, step: object, parents: tuple, args: tuple = (), places: Sequence[int] = ()
    ) -> None:
        self.level = level
        self.primal = primal
        self.step = step
        self.parents = parents
        self.args = args
        self.places = places
        self.place = HERE.place
        self.visit = HERE.visit if parents else None  # an input would hold the program as it was before: other graphs
        height = 0
        for parent in parents:
            if parent.height >= height:
                height = parent.height + 1
        self.height = height


def differentiate(active: Active, args: tuple) -> Value:
    """Apply an operation to operands, at least one of them tagged."""
    level = 0
    for a in args:
        if isinstance(a, Tagged) and a.level > level:
            level = a.level
    primals = tuple([a.primal if isinstance(a, Tagged) and a.level == level else a for a in args])
    result = active.apply(*primals)
    places = [i for i, a in enumerate(args) if a is not primals[i] and active.flows(i, primals, result)]
    if not places:
        return result
    if isinstance(args[places[0]], Jet):
        operands = (a if i in places else p for i, (a, p) in enumerate(zip(args, primals, strict=True)))
        return solved(active.rules, active.forward, tuple(operands), result, level)
    if len(places) == len(args):
        active = active.sharing
    if isinstance(args[places[0]], Node):
        return Node(level, result, active, tuple([args[i] for i in places]), primals, places)
    tangent = None
    for i in places:
        part = active.contribution(active.forward, i, args[i].tangent, primals, result)
        tangent = part if tangent is None else active.forward.apply("add", tangent, part)
    return Dual(level, result, tangent)


def at_level(x: Value, level: int) -> Value:
    """A leaf without tags of levels above `level`: the value escaped from these derivatives, which are finished."""
    while isinstance(x, Tagged) and x.level > level:
        x = x.primal
    return x


def primal_at(x: Value, level: int) -> Value:
    """A value without its tag of this level."""
    x = at_level(x, level)
    return x.primal if isinstance(x, Tagged) and x.level == level else x
