"""What derivatives have put beside values where a program stands: cotangents of a sweep, tangents of forward mode."""

from __future__ import annotations

from dpl.debug.sweeps import Part, Sweep
from dpl.eval.derivatives.derive import is_float, node_at, zero_of
from dpl.eval.values.active import Dual, Node, at_level
from dpl.eval.values.structure import leaves, rebuild
from dpl.eval.values.value import FUNCTIONS, Cell, Value


def cotangent(value: Value, sweep: Sweep) -> Value:
    """What has flowed to a value so far in a sweep, in the form of the value."""

    def at(leaf: Value) -> Value:
        found = node_at(leaf, sweep.level) if is_float(leaf) else None
        if found is None:
            return 0.0 if is_float(leaf) else leaf if isinstance(leaf, (str, *FUNCTIONS, Cell)) else zero_of(leaf)
        total = sweep.so_far(found)
        return 0.0 if isinstance(total, list) else total

    return rebuild(value, iter([at(leaf) for leaf in leaves(value)]))


def tangent(value: Value, level: int) -> Value:
    """The tangent of a value in forward mode."""

    def at(leaf: Value) -> Value:
        leaf = at_level(leaf, level)
        return leaf.tangent if isinstance(leaf, Dual) and leaf.level == level else 0.0 if is_float(leaf) else leaf

    return rebuild(value, iter([at(leaf) for leaf in leaves(value)]))


def is_forward(value: Value, level: int) -> bool:
    """Whether a value carries a tangent of this level."""
    return any(isinstance(at := at_level(leaf, level), Dual) and at.level == level for leaf in leaves(value))


def contributions(value: Value, sweep: Sweep) -> list[tuple[Part, Node]]:
    """The parts that have flowed to a number or array, with the node that each went to."""
    found = []
    for leaf in leaves(value):
        here = node_at(leaf, sweep.level) if is_float(leaf) else None
        if here:
            found += [(part, here) for part in sweep.contributions(here)]
    return found
