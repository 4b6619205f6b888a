"""Numbers that are not finite, and the operations that made them from finite ones.

    Finite(run)       the run halts at the first of them: `break nonfinite`
    Results(run)      the run halts where a call gives one: `dpl run --nan`

Operations of the library are watched, too, but the program stops only when what they made reaches the user's code: a
library function may meet an infinity on its way to a finite result.  An infinity that is written in the program, or
read by it, is no surprise; a NaN that comes from infinities is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any

from dpl.debug.points import Place
from dpl.debug.run import Halt, Run
from dpl.debug.sweeps import Sweep
from dpl.eval.values.active import HERE, Active, Dual, Node
from dpl.eval.values.series import Jet
from dpl.eval.values.structure import leaves
from dpl.eval.values.value import Array, Cell, Con, Tagged, Value, number
from dpl.node import entity

MOST_ORIGINS = 1 << 16  # bad values whose origins are known; the oldest go first


@entity
class Origin:
    """An operation whose result is not finite.  `operands` are numbers, for an array those at the bad element.  Origins
    are numbered in the order of the run.

    In a sweep, `node` is where the cotangent comes from; the first operand is then the cotangent."""

    place: Place | None
    visit: Any
    name: str
    operands: tuple[Value, ...]
    bad: float
    value: Value
    index: int | None
    number: int
    node: Node | None = None
    level: int = 0

    @property
    def kind(self) -> str:
        return "NaN" if self.bad != self.bad else "infinity"

    @property
    def is_tangent(self) -> bool:
        """Whether the number itself is finite, and its tangent is not."""
        made = self.value.data[self.index] if isinstance(self.value, Array) and self.index is not None else self.value
        return isinstance(made, Tagged) and is_finite(number(made))

    @property
    def title(self) -> str:
        """A sentence: what came out, and of which operation."""
        if self.is_tangent:
            return f"{self.kind} in forward mode, from the derivative of `{self.name}`: {self.equation}"
        if self.node is None:
            return f"{self.kind} from `{self.name}`: {self.equation}"
        return f"{self.kind} in the reverse sweep, from the derivative of `{self.name}`: {self.equation}"

    @property
    def equation(self) -> str:
        """The operation with its operands and its result."""
        if self.is_tangent:
            along = " ".join(text(next(iter(tangents(x)), 0.0)) for x in self.operands)
            return f"slope of {' '.join([self.name, *map(text, self.operands)])} along {along} = {text(self.bad)}"
        if self.node is None:
            return f"{' '.join([self.name, *map(text, self.operands)])} = {text(self.bad)}"
        g, *operands = self.operands
        return f"{text(g)} * slope of {' '.join([self.name, *map(text, operands)])} = {text(self.bad)}"


def text(x: Value) -> str:
    """A number with up to six digits, an array as its shape, and `...` for other values."""
    plain = number(x)
    if isinstance(plain, float):
        return f"{plain:.6g}" if isfinite(plain) and plain != int(plain) else repr(plain)
    if isinstance(plain, Array):
        return f"[{'x'.join(map(str, plain.shape))}]"
    return str(plain) if isinstance(plain, (int, bool)) else "..."


def always() -> bool:
    """Looks at every operation."""
    return True


class Finite:
    """Watches operations for results that are not finite, and halts the run at the first ones."""

    def __init__(self, run: Run, wanted: Callable[[], object] = always) -> None:
        """`wanted` says whether the run halts at an origin now."""
        self.run, self.wanted_now = run, wanted
        self.clear()

    def clear(self) -> None:
        """Forgets all origins, as before the first step."""
        self.origins: dict[int, tuple[Value, Origin]] = {}  # by the identity of a bad value, which is kept
        self.of_derivative: Origin | None = None  # the last one: what a program gets as derivatives are new values
        self.forgotten: Origin | None = None  # the first one that has gone from there
        self.of_library = False  # whether the library has made some
        self.count = 0
        self.last: Origin | None = None
        self.told: set[int] = set()  # origins for which the run has halted

    def watch(self, on: bool) -> None:
        """Begins to look at operations, or stops."""
        self.run.watch = self.operation if on else None
        self.run.watch_sweeps = self.contribution if on else None
        self.run._watching(True)

    def pass_by(self) -> None:
        """Do the step in which the run has halted, without halting."""
        self.run.renew()
        on = self.run._watching(False)
        self.run.repeat(self.run.time + 1)
        self.run._watching(on)

    def is_wanted(self, origin: Origin) -> bool:
        """Whether the run halts at an origin."""
        return bool(self.wanted_now())

    def halt(self, origin: Origin) -> None:
        self.told.add(id(origin))
        self.last = origin
        raise Halt(origin)

    def operation(self, place: Place | None, name: str, args: tuple, value: Value) -> None:
        """Notes an operation whose result is not finite although its operands are."""
        if value.__class__ is float and isfinite(value):
            return
        found = first_bad(value)
        if found is None:
            if place and self.of_library:
                self.arrived(args)
            return
        bad, index = found
        origin = self.source(args) or self.made(place, name, args, value, bad, index)
        if origin is None:
            return
        self.keep(value, origin)
        self.keep(bad, origin)
        if place and id(origin) not in self.told and is_number(value) and self.is_wanted(origin):
            self.halt(origin)
        if not place:
            self.of_library = True

    def arrived(self, args: tuple) -> None:
        """The user's code prints these, or asks something of them."""
        origin = self.source(args)
        if origin and id(origin) not in self.told and self.is_wanted(origin):
            self.halt(origin)

    def keep(self, value: Value, origin: Origin) -> None:
        if tangents(value):
            self.of_derivative = origin
        self.origins[id(value)] = value, origin
        if len(self.origins) > MOST_ORIGINS:
            _, oldest = self.origins.pop(next(iter(self.origins)))
            self.forgotten = self.forgotten or oldest

    def known(self, bad: Value) -> Origin | None:
        """The origin of a bad number, unless it was written or read."""
        kept = self.origins.get(id(bad)) or self.origins.get(id(number(bad)))
        return kept[1] if kept else self.of_derivative or self.forgotten

    def source(self, args: tuple) -> Origin | None:
        """The origin of a bad operand."""
        for arg in args:
            if arg.__class__ is not float or not isfinite(arg):
                value = arg.content if arg.__class__ is Cell else arg
                if kept := self.origins.get(id(value)):
                    return kept[1]
                if (found := first_bad(value)) and (cause := self.known(found[0])):
                    return cause
        return None

    def made(self, place: Place | None, name: str, args: tuple, value: Value, bad: float, index: int | None):
        """The origin that this operation is, unless one of its operands was bad already."""
        before = [b for arg in args if (b := first_bad(arg)) is not None]
        if any(b != b for b, _ in before) or (before and bad == bad):
            return None
        operands = tuple(element(arg, index, value) for arg in args)
        self.count += 1
        return Origin(place or HERE.place, HERE.visit, name, operands, bad, value, index, self.count)

    def contribution(self, sweep: Sweep, node: Node, parent: Node, part: Value) -> None:
        """The same for what a reverse sweep adds to a cotangent."""
        bad = number(part)
        if isfinite(bad):
            return
        total = sweep.by_node.get(id(node))
        before = [total] if not isinstance(total, list) else [p for _, p in total]
        if (cause := self.source((*before, *node.args))) and id(cause) not in self.told:
            self.of_derivative = cause
            return
        given = [b for x in before if (b := number(x)) == b and isfinite(b)]
        if any(bad == bad or x != x for x in map(number, (*before, *node.args)) if not is_finite(x)):
            return
        step = node.step
        name = step.name if isinstance(step, Active) else "a function with a rule of its own"
        operands = (total, *node.args) if isinstance(step, Active) else (given[0] if given else 0.0,)
        self.count += 1
        origin = Origin(node.place, node.visit, name, operands, bad, part, None, self.count, node, sweep.level)
        self.of_derivative = origin
        if self.is_wanted(origin):
            HERE.visit = node.visit or HERE.visit
            self.halt(origin)


class Results(Finite):
    """Watches calls for results that are not finite.  When one halts the run, its origin becomes `wanted`: in a second
    run this is where the run halts.  With `first`, the first such result halts the run even if no operation made it."""

    def __init__(self, run: Run, first: bool = False) -> None:
        super().__init__(run)
        self.first = first
        self.wanted: Origin | None = None

    def watch(self, on: bool) -> None:
        self.run.watch_results = self.result if on else None
        super().watch(on)

    def is_wanted(self, origin: Origin) -> bool:
        return self.wanted is not None and origin.number == self.wanted.number

    def result(self, value: Value) -> None:
        """A call has given this."""
        if self.count == 0 and not self.first:
            return
        for leaf in bad_leaves(value):
            origin = self.known(leaf)
            if origin and (self.wanted is None or self.is_wanted(origin)):
                self.halt(origin)
            if self.first and self.wanted is None:
                raise Halt(leaf)


def bad_leaves(value: Value) -> Iterator[Value]:
    """The floats in a value that are not finite, also those that references hold."""
    seen: set[int] = set()
    todo = [value]
    while todo:
        for leaf in leaves(todo.pop()):
            if isinstance(leaf, Cell) and id(leaf) not in seen:
                seen.add(id(leaf))
                todo.append(leaf.content)
            elif isinstance(leaf, (float, Tagged)) and not isfinite(number(leaf)):
                yield leaf


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
    if is_finite(plain := number(x)):
        while isinstance(x, Tagged):
            for part in tangents(x):
                if not isfinite(number(part)):
                    return number(part)
            x = x.primal
        return None
    return plain


def tangents(x: Value) -> list[Value]:
    """What forward mode carries beside a number: its tangent, or the coefficients of its series."""
    if isinstance(x, Dual):
        return [x.tangent]
    return [c for c in x.coefficients[1:] if c is not None] if isinstance(x, Jet) else []


def element(arg: Value, index: int | None, result: Value) -> Value:
    """The operand's number at the place of the bad element, for an elementwise operation."""
    if index is None or not isinstance(arg, Array) or not isinstance(result, Array):
        return arg
    inner = result.shape[len(result.shape) - len(arg.shape) :]
    return arg.data[index % len(arg.data)] if arg.shape == inner and arg.data else arg
