"""A reverse sweep: while it goes on, and as data: how large the values of a line and their cotangents are.

The sweep follows the program in reverse order.  The contributions to a node are kept apart and added up when the
node's turn comes, in the order in which the interpreter adds them: so the numbers are the same, bit for bit.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from math import isfinite
from operator import itemgetter
from typing import Any

from dpl.eval.derivatives.derive import Pullback
from dpl.eval.derivatives.tape import Cotangents, in_order
from dpl.eval.machine.failure import shown_name
from dpl.eval.values.active import CHOOSE, HERE, Active, Node
from dpl.eval.values.scalar import scalar
from dpl.eval.values.value import Array, Value, number
from dpl.node import node, record

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


class Sweep(Cotangents):
    """A sweep in progress.  `by_node` has the contributions until the node's turn, then their sum.

    It knows itself how to go back: nothing else holds its graph when the moments within it are dropped."""

    watch: Callable | None = None  # called with each contribution: (sweep, node, its parent, part)

    def __init__(self, pullback: Pullback, cotangent: Value) -> None:
        self.pullback = pullback
        seeds = pullback.seeds(cotangent)
        order = in_order(seeds)
        self.rank = {id(n): i for i, n in enumerate(order, len(seeds))}
        self.nodes = sorted(order, key=lambda n: (serial(n), n.height), reverse=True)
        self.parts: dict[int, Parts] = {}
        self.changed: list[int] = []  # the keys of `parts` in the order of the contributions
        self.repeated: dict[int, int] = {}  # what `repeats` has found, by the node
        self.calls: dict[tuple[int, int], Any] = {}  # what `inspect.calls_around` has found, by visit and place
        self.begun: dict[int, int] = {}  # how many contributions there were before a node
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
        self.changed.append(key)
        self.parts[key] = (part, self.parts.get(key))

    def add(self, node: Node, cotangent: Value, kind: str = "f64") -> None:
        """Adds a contribution to a node's cotangent.  Contributions are kept apart, so that each can be shown."""
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
        """The contributions to a node, in the order in which they came."""
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
        """The cotangent of a node so far."""
        return self.so_far(node)

    def repeats(self, node: Node) -> int:
        """How often its operation was done before at the same visit, for operands of a node and for theirs."""
        way: list[Node] = []
        here: Node | None = node
        while here is not None and id(here) not in self.repeated:
            way.append(here)
            here = before(here)
        least = 0 if here is None else self.repeated[id(here)] + 1
        for count, done in enumerate(reversed(way), least):
            self.repeated[id(done)] = count
        return self.repeated[id(node)]

    def go(self, start: int) -> int:
        """Pass back through the nodes of one visit of a line, and return the place of the next one."""
        self.begun[start] = len(self.changed)
        nodes, i = self.nodes, start
        while i < len(nodes) and (i == start or same_stop(nodes[i], nodes[start])):
            self.visit(nodes[i])
            i += 1
        return i

    def back_to(self, start: int) -> None:
        """Take back what has flowed since a node had its turn."""
        keep = self.begun.get(start, len(self.changed))
        for key in reversed(self.changed[keep:]):
            _, before = self.parts[key]
            if before is None:
                del self.parts[key]
            else:
                self.parts[key] = before
        del self.changed[keep:]

    def visit(self, node: Node) -> None:
        """Pass the cotangent of a node on to its parents."""
        self.now = node
        HERE.place = node.place
        self.by_node[id(node)] = self.so_far(node)
        self.pass_on(node)
        del self.by_node[id(node)]


def before(node: Node) -> Node | None:
    """The nearest node of the same place and visit from which a node was made."""
    todo, seen = deque(node.parents), set[int]()
    while todo:
        here = todo.popleft()
        if here.visit is not node.visit or id(here) in seen:
            continue
        if here.place is node.place:
            return here
        seen.add(id(here))
        todo += here.parents
    return None


def serial(node: Node) -> int:
    return node.visit[0] if node.visit else 0


def same_stop(a: Node, b: Node) -> bool:
    """Whether two nodes were made at one visit of one point."""
    return a.visit is b.visit and (a.place and a.place.point) is (b.place and b.place.point)


# ---- as data ---------------------------------------------------------------------------------------------------------


@record
class Row:
    """What happened at one line.  `value` and `cotangent` are the largest magnitudes."""

    function: str
    name: str  # of the source
    line: int
    text: str
    visits: int = 0
    nodes: int = 0
    value: float = 0.0
    cotangent: float = 0.0
    zeros: int = 0  # cotangents that are exactly 0
    bad: int = 0  # cotangents that are not finite
    kinks: int = 0  # operations at a point without a slope of their own


def rows(sweep: Sweep, done: int | None = None, by_visit: bool = False) -> list[Row]:
    """The lines of a sweep in its order, latest operations of the program first.  `done` is the number of nodes that
    are behind it."""
    found: dict[object, Row] = {}
    seen: set[tuple] = set()
    for made in sweep.nodes[:done]:
        if made.place is None:
            continue
        span = made.place.span
        visit = serial(made)
        key = (span.source, span.line, visit if by_visit else 0)
        function = shown_name(made.place.point.function.name)
        row = found.setdefault(key, Row(function, span.source.name, span.line, span.source.line(span.line).strip()))
        row.visits += (key, visit) not in seen
        seen.add((key, visit))
        measure(row, made, sweep.so_far(made))
    return list(found.values())


def measure(row: Row, node: Node, cotangent: object) -> None:
    row.nodes += 1
    row.value = larger(row.value, number(node.primal))
    row.kinks += is_kink(node)
    parts = [part for _, part in cotangent] if isinstance(cotangent, list) else [cotangent]
    for part in parts:
        plain = number(part)
        row.cotangent = larger(row.cotangent, plain)
        row.zeros += plain == 0
        row.bad += not isfinite(plain)


def larger(a: float, b: object) -> float:
    if not isinstance(b, (int, float)):
        return a
    return b if b != b else a if a != a else max(a, abs(b))


def is_kink(node: Node) -> bool:
    """Whether an operation that chooses an operand had two equal ones: `relu` at 0, `max x x`."""
    step = node.step
    if not isinstance(step, Active) or step.name not in (*CHOOSE, "abs"):
        return False
    args = [number(a) for a in node.args]
    return args[0] == 0 if step.name in ("relu", "abs") else len(args) > 1 and args[0] == args[1]


def largest(parts: Iterable[tuple[Part, Node]]) -> list[tuple[Part, Node]]:
    """Contributions, the largest first; what is not finite comes before all."""

    def size(item: tuple[Part, Node]) -> float:
        plain = abs(number(item[0].value))
        return plain if plain == plain else float("inf")

    return sorted(parts, key=size, reverse=True)


def recorded(pullback: Pullback) -> Array:
    """The whole sweep of a function to a number, as the primitive `record_sweep` gives it: a tuple for each visit of a
    line, in the sweep's order.  The visits of a line are numbered in the order of the program."""
    here = HERE.place, HERE.visit
    sweep = Sweep(pullback, 1.0)
    for made in sweep.nodes:
        sweep.visit(made)
    HERE.place, HERE.visit = here
    found = rows(sweep, by_visit=True)
    left = Counter((row.name, row.line) for row in found)
    data = []
    for row in found:
        key = row.name, row.line
        data.append((row.function, row.name, row.line, left[key], row.nodes, row.value, row.cotangent, row.zeros,
                     row.bad, row.kinks))  # fmt: skip
        left[key] -= 1
    return Array((len(data),), data)
