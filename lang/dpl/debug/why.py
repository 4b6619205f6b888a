"""Why a value is what it is: the operations that made it, newest first, down to the inputs.

The run is repeated from an earlier moment while every operation is written down, with the identity of its result.
Within a reverse sweep the graph itself says where a number comes from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dpl.core import term as c
from dpl.debug.nonfinite import Origin, first_bad, text
from dpl.debug.points import MOVES, Place
from dpl.debug.run import Halt, Run
from dpl.eval.values.active import HERE, Active, Node
from dpl.eval.values.value import Array, Tagged, Value, number
from dpl.node import node
from dpl.source import Span

MOST_RECORDS = 400_000
MOST_STEPS = 12  # lines of an answer


@node
class Made:
    """An operation and what it made."""

    place: Place | None
    name: str
    operands: tuple[Value, ...]
    value: Value

    @property
    def line(self) -> str:
        """The operation as an equation."""
        return f"{text_of(self.value)} = {' '.join([self.name, *map(text_of, self.operands)])}"


def text_of(value: Value) -> str:
    """A number, or an array's first bad number, as text."""
    if isinstance(value, Array):
        found = first_bad(value)
        shape = "x".join(map(str, value.shape))
        return f"[{shape}, {text(found[0])} at {found[1]}]" if found else f"[{shape}]"
    return text(value)


class Records:
    """The operations since some moment, by the identity of their results."""

    def __init__(self) -> None:
        self.made: dict[int, Made] = {}

    def note(self, place: Place | None, name: str, args: tuple, value: Value) -> None:
        """Notes the operation that made a value, unless it only moved it."""
        if any(arg is value for arg in args) or isinstance(value, (int, str)) or len(self.made) >= MOST_RECORDS:
            return
        if name in MOVES and self.of(value):  # what is taken out of an array keeps the operation that made it
            return
        self.made[id(value)] = Made(place, name, args, value)

    def of(self, value: Value) -> Made | None:
        """The operation that made a value; None if it is not known."""
        found = self.made.get(id(value))
        return found if found is not None and found.value is value else None


def recorded(run: Run, inside: Origin | None = None) -> Records:
    """The operations that led to now; with `inside`, also those of the step in which the run has halted at this origin,
    up to there: what follows may print.  The run is repeated from far enough back, as long as they are not too many."""
    records, now = Records(), run.time
    ended, here = run.ended, (HERE.place, HERE.visit)
    near = [moment for moment in run.history.moments if now - moment.time <= MOST_RECORDS // 8]
    run.restore(near[0] if near else run.history.moments[-1])
    watch, run.watch = run.watch, records.note
    sweeps, run.watch_sweeps = run.watch_sweeps, None  # it would stop the run at what is not finite in a sweep before
    run._watching(True)
    try:
        run.repeat(now)
        if inside:
            run.watch = up_to(inside, records)
            run._watching(True)
            run.repeat(now + 1)
            run.watch = None
            run._watching(True)
            run.renew() if run.time == now else run.go_to(now)
    finally:
        run.watch, run.watch_sweeps = watch, sweeps
        run._watching(True)
    if run.time == now:
        run.ended, (HERE.place, HERE.visit) = ended, here
    return records


def up_to(origin: Origin, records: Records) -> Callable[[Place | None, str, tuple, Value], None]:
    """Notes operations, and halts the run at that of an origin."""

    def note(place: Place | None, name: str, args: tuple, value: Value) -> None:
        records.note(place, name, args, value)
        if is_of(Made(place, name, args, value), origin):
            raise Halt(origin)

    return note


def is_of(made: Made, origin: Origin) -> bool:
    """Whether an operation is the one that an origin is."""
    return made.name == origin.name and bool(first_bad(made.value)) and (made.place or origin.place) is origin.place


def culprit(records: Records, origin: Origin) -> Made | None:
    """The record of the operation that an origin is."""
    return next((made for made in records.made.values() if is_of(made, origin)), None)


def operations(records: Records, value: Value) -> list[Made]:
    """The user's operations that made a value, newest first: breadth first, each once."""
    found: list[Made] = []
    seen: set[int] = set()
    todo = deque([value])
    while todo and len(found) < MOST_STEPS:
        x = todo.popleft()
        made = records.of(x)
        if made is None or id(made) in seen:
            continue
        seen.add(id(made))
        if made.place is not None:
            found.append(made)
        todo.extend(arg for arg in made.operands if not isinstance(arg, (int, str)))
    return found


class Way:
    """A chain that grows at its end, which others have in common with it."""

    __slots__ = ("before", "last", "length")

    def __init__(self, last: Any, before: Way | None = None) -> None:
        self.last, self.before = last, before
        self.length: int = before.length + 1 if before else 1

    def steps(self) -> list:
        """The chain from its first link on."""
        found, way = [], self
        while way:
            found.append(way.last)
            way = way.before
        return found[::-1]


def shortest(records: Records, start: Iterable[Value]) -> list[Made]:
    """The shortest chain of operations from values to an input: a value that no operation made.  Literals are no
    inputs; moving numbers about is no operation."""
    todo: deque[tuple[Value, Way | None]] = deque((value, None) for value in start)
    seen: set[int] = set()
    longest: Way | None = None
    while todo:
        x, way = todo.popleft()
        made = records.of(x)
        if id(x) in seen or made is None:
            continue
        seen.add(id(x))
        here = way if made.name in MOVES or made.place is None else Way(made, way)
        operands = causes(made.name, made.value, made.operands)
        if here and not any(records.of(arg) for arg in operands) and not is_constant(made):
            return here.steps()
        longest = max(longest, here, key=lambda found: found.length if found else 0)
        todo.extend((arg, here) for arg in operands)
    return longest.steps() if longest else []


def causes(name: str, value: Value, operands: tuple) -> tuple:
    """The operands that make a result what it is: a product is zero because of its factors that are, a quotient
    infinite or NaN because of a divisor that is zero, and zero because of a dividend that is or of a divisor that is
    infinite.  Else a number that is not finite comes from those that are not."""
    if is_zero(value) and name in ("mul", "div"):
        return tuple(operand for operand in operands if is_zero(operand)) or operands[1:] * (name == "div")
    if name == "div" and is_zero(operands[1]):
        return operands[1:]
    return tuple(operand for operand in operands if first_bad(operand)) * bool(first_bad(value)) or operands


def active_causes(made: Node) -> tuple[Node, ...]:
    """Those of `causes` that are differentiated."""
    if not isinstance(made.step, Active):
        return made.parents
    found = {id(operand) for operand in causes(made.step.name, made.primal, made.args)}
    return tuple(parent for i, parent in zip(made.places, made.parents, strict=True) if id(made.args[i]) in found)


def is_zero(value: Value) -> bool:
    return isinstance(value, (float, Tagged)) and number(value) == 0.0


def is_constant(made: Made) -> bool:
    """Whether all operands are literals."""
    term = made.place.term if made.place else None
    return isinstance(term, c.Prim) and all(isinstance(arg, c.Lit) for arg in term.args)


def through_graph(origin: Origin) -> list[Node]:
    """The shortest way in the graph from the node of an origin to an input of the differentiated function."""
    assert origin.node
    todo = deque([Way(origin.node)])
    seen: set[int] = set()
    while todo:
        way = todo.popleft()
        if not (parents := active_causes(way.last)):
            return way.steps()
        for parent in parents:
            if id(parent) not in seen:
                seen.add(id(parent))
                todo.append(Way(parent, way))
    return [origin.node]


def node_line(made: Node) -> str:
    """A node of a graph as an equation."""
    step = made.step
    if isinstance(step, Active):
        return f"{text(made)} = {' '.join([step.name, *map(text, made.args)])}"
    return f"{text(made)}, an input of the function" if step is None else f"{text(made)}, by a rule of its own"


def chain(run: Run, origin: Origin) -> list[tuple[str, Span | None]]:
    """The shortest chain from a number that is not finite to the inputs that caused it: equations with places."""
    if origin.node is not None:
        return [(node_line(made), made.place.span if made.place else None) for made in through_graph(origin)]
    records = recorded(run, origin)
    found = culprit(records, origin)
    operands = found.operands if found else origin.operands
    made = shortest(records, causes(origin.name, origin.value, operands))
    return [(m.line, m.place.span if m.place else None) for m in made]
