"""The first number of a run that is not finite, and the operation that made it from finite ones.

Operations of the library are watched, too, but the program stops only when what they made reaches the user's code: a
library function may meet an infinity on its way to a finite result.  An infinity that is written in the program, or
read by it, is no surprise; a NaN that comes from infinities is.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from dpl.debug.points import Place
from dpl.debug.run import Halt, Run
from dpl.debug.sweeps import Sweep
from dpl.eval.values.active import HERE, Active, Dual, Node
from dpl.eval.values.value import Array, Cell, Con, Tagged, Value, number
from dpl.node import entity


@entity
class Origin:
    """An operation whose result is not finite.  `operands` are numbers, for an array those at the bad element.

    In a sweep, `node` is where the cotangent comes from; the first operand is then the cotangent."""

    place: Place | None
    visit: Any
    name: str
    operands: tuple[Value, ...]
    bad: float
    value: Value
    index: int | None
    node: Node | None = None
    level: int = 0

    @property
    def kind(self) -> str:
        return "NaN" if self.bad != self.bad else "infinity"

    @property
    def title(self) -> str:
        if self.node is None:
            return f"{self.kind} from `{self.name}`: {self.equation}"
        return f"{self.kind} in the reverse sweep, from the derivative of `{self.name}`: {self.equation}"

    @property
    def equation(self) -> str:
        if self.node is None:
            return f"{' '.join([self.name, *map(text, self.operands)])} = {text(self.bad)}"
        g, *operands = self.operands
        return f"{text(g)} * slope of {' '.join([self.name, *map(text, operands)])} = {text(self.bad)}"


def text(x: Value) -> str:
    plain = number(x)
    if isinstance(plain, float):
        return f"{plain:.6g}" if isfinite(plain) and plain != int(plain) else repr(plain)
    if isinstance(plain, Array):
        return f"[{'x'.join(map(str, plain.shape))}]"
    return str(plain) if isinstance(plain, (int, bool)) else "..."


class Finite:
    """Watches operations for results that are not finite."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.clear()

    def clear(self) -> None:
        self.origins: dict[int, tuple[Value, Origin]] = {}  # by the identity of a bad value, which is kept
        self.last: Origin | None = None
        self.told: set[int] = set()  # origins for which the run has halted

    def watch(self, on: bool) -> None:
        self.run.watch = self.operation if on else None
        self.run.watch_sweeps = self.contribution if on else None
        self.run._watching(True)

    def pass_by(self) -> None:
        """Do the step in which the run has halted, without halting."""
        self.run.renew()
        on = self.run._watching(False)
        self.run.repeat(self.run.time + 1)
        self.run._watching(on)

    def operation(self, place: Place | None, name: str, args: tuple, value: Value) -> None:
        if value.__class__ is float and isfinite(value):
            return
        found = first_bad(value)
        if found is None:
            return
        bad, index = found
        origin = self.source(bad, args) or self.made(place, name, args, value, bad, index)
        if origin is None:
            return
        self.origins[id(value)] = value, origin
        if place and id(origin) not in self.told and is_number(value):
            self.told.add(id(origin))
            self.last = origin
            raise Halt(origin)

    def source(self, bad: float, args: tuple) -> Origin | None:
        """The origin of a bad operand."""
        for arg in args:
            if kept := self.origins.get(id(arg.content if arg.__class__ is Cell else arg)):
                return kept[1]
        return None

    def made(self, place: Place | None, name: str, args: tuple, value: Value, bad: float, index: int | None):
        """The origin that this operation is, unless one of its operands was bad already."""
        before = [b for arg in args if (b := first_bad(arg)) is not None]
        if any(b != b for b, _ in before) or (before and bad == bad):
            return None
        operands = tuple(element(arg, index, value) for arg in args)
        return Origin(place or HERE.place, HERE.visit, name, operands, bad, value, index)

    def contribution(self, sweep: Sweep, node: Node, parent: Node, part: Value) -> None:
        bad = number(part)
        if isfinite(bad):
            return
        total = sweep.by_node.get(id(node))
        before = [total] if not isinstance(total, list) else [p for _, p in total]
        given = [b for x in before if (b := number(x)) == b and isfinite(b)]
        if any(bad == bad or x != x for x in map(number, (*before, *node.args)) if not is_finite(x)):
            return
        step = node.step
        name = step.name if isinstance(step, Active) else "a function with a rule of its own"
        operands = (total, *node.args) if isinstance(step, Active) else (given[0] if given else 0.0,)
        origin = Origin(node.place, node.visit, name, operands, bad, part, None, node, sweep.level)
        HERE.visit = node.visit or HERE.visit
        self.last = origin
        raise Halt(origin)


def is_finite(x: Value) -> bool:
    return not isinstance(x, float) or isfinite(x)


def is_number(value: Value) -> bool:
    return isinstance(value, (float, Tagged, Array))


def first_bad(value: Value) -> tuple[float, int | None] | None:
    """The first number in a value that is not finite, and its index if the value is an array.  For forward mode, a
    tangent counts; of a reference, the content."""
    if value.__class__ is Cell:
        value = value.content
    if value.__class__ is float:
        return None if isfinite(value) else (value, None)
    if isinstance(value, Tagged):
        return None if (bad := bad_part(value)) is None else (bad, None)
    if value.__class__ is Array:
        return in_array(value.data)
    return None


def in_array(data: list) -> tuple[float, int] | None:
    try:
        if all(map(isfinite, data)):
            return None
    except (TypeError, OverflowError):
        if data and isinstance(data[0], (tuple, Con, str)):
            return None
    for i, x in enumerate(data):
        if isinstance(x, (float, Tagged)) and (bad := bad_part(x)) is not None:
            return bad, i
    return None


def bad_part(x: Value) -> float | None:
    """The number itself or one of its tangents, if it is not finite."""
    while isinstance(x, Tagged):
        if isinstance(x, Dual) and not isfinite(number(x.tangent)):
            return number(x.tangent)
        x = x.primal
    return x if isinstance(x, float) and not isfinite(x) else None


def element(arg: Value, index: int | None, result: Value) -> Value:
    """The operand's number at the place of the bad element, for an elementwise operation."""
    if index is None or not isinstance(arg, Array) or not isinstance(result, Array):
        return arg
    inner = result.shape[len(result.shape) - len(arg.shape) :]
    return arg.data[index % len(arg.data)] if arg.shape == inner and arg.data else arg
