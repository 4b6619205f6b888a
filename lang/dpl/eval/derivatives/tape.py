"""Reverse mode: the sweep over the graph of Nodes, and the steps that are not Actives.

    seeds: [(node of a result, its cotangent)]  ->  cotangents by node

The graph is immutable, so a pullback may sweep it any number of times.  Nodes are visited from the highest down, so
all users of a node come before it.  Only nodes that a seed depends on are visited: a leaf on which the result does not
depend gets exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpl.diagnostics import DplError
from dpl.eval.values.active import Active, Node, at_level
from dpl.eval.values.scalar import scalar
from dpl.eval.values.value import Value, number

Seeds = list[tuple[Node, Value]]


class Joint:
    """A step with its own rule, from many floats to many.  `pull_all` maps a list of (output number, cotangent) to the
    cotangents of the parents."""

    __slots__ = ("pull_all",)

    def __init__(self, pull_all: Callable[[list[tuple[int, Value]]], list]) -> None:
        self.pull_all = pull_all


class Output:
    """One float of a Joint.  The first parent of its node is the Joint's node.  If the float also depends on the level
    through variables that the rule's functions captured, the second parent is the float as computed."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Cotangents:
    """The cotangent of each node so far: a sum, or for a Joint a list of (output number, cotangent)."""

    def __init__(self, seeds: Seeds) -> None:
        self.by_node: dict[int, Any] = {}
        for node, cotangent in seeds:
            self.add(node, cotangent)

    def add(self, node: Node, cotangent: Value, kind: str = "f64") -> None:
        """Adds to a node's cotangent."""
        key = id(node)
        before = self.by_node.get(key)
        if before is None:
            self.by_node[key] = cotangent
        else:
            self.by_node[key] = scalar("add", kind)(before, cotangent)

    def collect(self, joint: Node, index: int, cotangent: Value) -> None:
        self.by_node.setdefault(id(joint), []).append((index, cotangent))

    def of(self, node: Node) -> Value:
        """The cotangent of a node; 0.0 if nothing was added."""
        return self.by_node.get(id(node), 0.0)

    def pass_on(self, node: Node) -> None:
        """Add the contributions of a node, whose cotangent is complete, to the cotangents of its parents."""
        cotangent = self.by_node[id(node)]
        step, parents = node.step, node.parents
        if isinstance(step, Active):
            world = step.reverse
            for i, parent in zip(node.places, parents, strict=True):
                part = step.contribution(world, i, cotangent, node.args, node.primal)
                self.add(parent, part, world.kind)
        elif isinstance(step, Output):
            self.collect(parents[0], step.index, cotangent)
            for parent in parents[1:]:
                self.add(parent, cotangent)
        elif isinstance(step, Joint):
            for parent, part in zip(parents, step.pull_all(cotangent), strict=True):
                self.add(parent, part)


def sweep(seeds: Seeds) -> Cotangents:
    """The cotangents of all nodes that the seeds depend on."""
    cotangents = Cotangents(seeds)
    pass_on = cotangents.pass_on
    for node in in_order(seeds):
        pass_on(node)
    return cotangents


def in_order(seeds: Seeds) -> list[Node]:
    """The nodes that the seeds depend on, from the highest down."""
    return sorted(reachable([node for node, _ in seeds]), key=lambda n: n.height, reverse=True)


def reachable(nodes: list[Node]) -> list[Node]:
    """The nodes and all their ancestors."""
    seen: dict[int, Node] = {}
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            todo.extend(node.parents)
    return list(seen.values())


# ---- linearity ----------------------------------------------------------------------------------------------------


def check_linear(outputs: list, level: int) -> None:
    """Check that a `with_jvp` rule is linear in its tangent.  Raises R0504 unless each tangent in `outputs` is computed
    from the level's nodes by sums, negations, conversions, and products or quotients with values that do not depend on
    them."""
    roots = [at_level(leaf, level) for leaf in outputs]
    nodes = [leaf for leaf in roots if isinstance(leaf, Node) and leaf.level == level]
    constants = [leaf for leaf in roots if not (isinstance(leaf, Node) and leaf.level == level)]
    if not (all(number(c) == 0 for c in constants) and all(map(_is_linear, reachable(nodes)))):
        raise DplError.at(
            "R0504",
            "the rule given to `with_jvp` is not linear in its tangent",
            helps=("the second result must be a sum of products of the tangent with values that do not depend on it",),
        )


def _is_linear(node: Node) -> bool:
    step = node.step
    if not isinstance(step, Active):
        return True
    others = [a for i, a in enumerate(node.args) if i not in node.places]
    if step.name in ("add", "sub"):
        return all(number(a) == 0 for a in others)
    if step.name == "mul":
        return len(node.places) == 1
    return step.name in ("neg", "f64", "f32", "f16") or (step.name == "div" and node.places == [0])
