"""A reverse sweep as data: for each visit of a line, how large the values and their cotangents are."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from dpl.debug.machine import Part, Sweep
from dpl.eval.values.active import CHOOSE, Active, Node
from dpl.eval.values.value import number
from dpl.node import record


@record
class Row:
    """What happened at one line.  `value` and `cotangent` are the largest magnitudes."""

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
    for node in sweep.nodes[:done]:
        if node.place is None:
            continue
        span = node.place.span
        visit = node.visit[0] if node.visit else 0
        key = (span.source, span.line, visit if by_visit else 0)
        row = found.setdefault(key, Row(span.source.name, span.line, span.source.line(span.line).strip()))
        row.visits += (key, visit) not in seen
        seen.add((key, visit))
        measure(row, node, sweep.so_far(node))
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
