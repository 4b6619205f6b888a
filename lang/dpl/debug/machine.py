"""The abstract machine of the debugger: a reverse sweep is a sequence of steps of its own.

In the interpreter a pullback is one step.  Here each step passes back through one visit of one line, so the debugger
can stop within the sweep, and go back.  The sweep follows the program in reverse order.  The contributions to a node
are kept apart and added up when the node's turn comes, in the order in which the interpreter adds them: so the
numbers are the same, bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from dpl.debug.journal import Journal, put_item
from dpl.eval.derivatives.derive import Levels, Pullback
from dpl.eval.derivatives.tape import Cotangents, in_order
from dpl.eval.machine.machine import Frame, Machine, State
from dpl.eval.values.active import HERE, Node
from dpl.eval.values.scalar import scalar
from dpl.eval.values.value import Cont, Value
from dpl.node import node

Parts = tuple  # contributions, as a chain (Part, the parts before)


@node
class Part:
    """A contribution to a cotangent: from which node (None: where the sweep began), and at which rank of the order in
    which parts are added."""

    rank: int
    index: int
    value: Value
    kind: str
    source: Node | None


class Counted(Levels):
    """Levels that can go back."""

    def __init__(self) -> None:
        self.last = 0

    def fresh(self) -> int:
        self.last += 1
        return self.last


class Sweep(Cotangents):
    """A sweep in progress.  `by_node` has the contributions until the node's turn, then their sum."""

    def __init__(self, pullback: Pullback, cotangent: Value, journal: Journal, watch: Callable | None) -> None:
        self.pullback = pullback
        self.journal = journal
        self.watch = watch  # called with each contribution: (sweep, node, its parent, part)
        seeds = pullback.seeds(cotangent)
        order = in_order(seeds)
        self.rank = {id(n): i for i, n in enumerate(order, len(seeds))}
        self.nodes = sorted(order, key=lambda n: (serial(n), n.height), reverse=True)
        self.parts: dict[int, Parts] = {}
        self.by_node: dict[int, Any] = {}
        self.seeds = seeds
        self.now: Node | None = None
        for i, (seed, part) in enumerate(seeds):
            self.put(seed, (i, 0, part, "f64", None))

    @property
    def level(self) -> int:
        return self.pullback.level

    def put(self, parent: Node, part: tuple) -> None:
        """Note a contribution: the fields of a Part."""
        key = id(parent)
        before = self.parts.get(key)
        self.journal.changes.append((put_item, self.parts, key, before))
        self.parts[key] = (part, before)

    def add(self, node: Node, cotangent: Value, kind: str = "f64") -> None:
        now = self.now
        if self.watch:
            self.watch(self, now, node, cotangent)
        self.put(node, (self.rank[id(now)], 0, cotangent, kind, now))

    def collect(self, joint: Node, index: int, cotangent: Value) -> None:
        self.put(joint, (self.rank[id(self.now)], index, cotangent, "", self.now))

    def contributions(self, node: Node) -> list[Part]:
        """The parts that have flowed to a node so far, in the order in which they are added."""
        return [Part(*part) for part in self.in_order(node)]

    def in_order(self, node: Node) -> list[tuple]:
        found, chain = [], self.parts.get(id(node))
        while chain:
            part, chain = chain
            found.append(part)
        found.reverse()
        if len(found) > 1:
            found.sort(key=itemgetter(0))
        return found

    def so_far(self, node: Node) -> Any:
        """The sum of what has flowed to a node; 0 if nothing has.  For a step with a rule of its own, a list."""
        chain = self.parts.get(id(node))
        if chain is None:
            return 0.0
        if chain[1] is None and chain[0][3]:  # a single contribution, as is usual
            return chain[0][2]
        parts = self.in_order(node)
        if not parts[0][3]:
            return [(part[1], part[2]) for part in parts]
        total = parts[0][2]
        for part in parts[1:]:
            total = scalar("add", part[3])(total, part[2])
        return total

    def of(self, node: Node) -> Value:
        return self.so_far(node)

    def visit(self, node: Node) -> None:
        """Pass the cotangent of a node on to its parents."""
        self.now = node
        HERE.place = node.place
        self.by_node[id(node)] = self.so_far(node)
        self.pass_on(node)
        del self.by_node[id(node)]


def serial(node: Node) -> int:
    return node.visit[0] if node.visit else 0


def same_stop(a: Node, b: Node) -> bool:
    """Whether two nodes were made at one visit of one point."""
    return a.visit is b.visit and (a.place and a.place.point) is (b.place and b.place.point)


class Captured(Cont):
    """A continuation that knows where it was captured."""

    __slots__ = ("place",)

    def __init__(self, frames: Frame, place: Any) -> None:
        super().__init__(frames)
        self.place = place


class DebugMachine(Machine):
    def __init__(self) -> None:
        super().__init__()
        self.levels: Counted = Counted()
        self.journal: Journal | None = None
        self.watch: Callable | None = None
        self.resumed: deque[Captured] = deque(maxlen=64)  # the continuations called last
        self.sweep_step: Callable = self._sweep_step  # one object, so that it can be looked up

    def apply(self, f: Value, args: tuple, k: Frame) -> State:
        if f.__class__ is Captured:
            self.resumed.append(f)
        if f.__class__ is not Pullback:
            return super().apply(f, args, k)
        assert self.journal
        k = self._more(args, k)
        return self.sweep_step, 0, (swept, Sweep(f, args[0], self.journal, self.watch), k)

    def _sweep_step(self, start: int, frame: Frame) -> State:
        """Pass back through the nodes of one visit of a line."""
        sweep: Sweep = frame[1]
        nodes, i = sweep.nodes, start
        while i < len(nodes) and (i == start or same_stop(nodes[i], nodes[start])):
            sweep.visit(nodes[i])
            i += 1
        if i < len(nodes):
            return self.sweep_step, i, frame
        return swept(sweep.pullback.result(sweep), frame)


def swept(value: Value, frame: Frame) -> State:
    """The frame of a sweep: it passes the gradient on."""
    k = frame[2]
    return k[0], value, k
