"""The abstract machine of the debugger: a reverse sweep is a sequence of steps of its own.

In the interpreter a pullback is one step.  Here each step passes back through one visit of one line, so the debugger
can stop within the sweep, and go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from dpl.debug.sweeps import Sweep, recorded
from dpl.eval.derivatives.derive import Levels, Pullback
from dpl.eval.machine.machine import Frame, Machine, State
from dpl.eval.values.active import HERE
from dpl.eval.values.value import Cont, Value


class Counted(Levels):
    """Levels that can go back."""

    def __init__(self) -> None:
        self.last = 0

    def fresh(self) -> int:
        self.last += 1
        return self.last


class Captured(Cont):
    """A continuation that knows where it was captured."""

    __slots__ = ("place",)

    def __init__(self, frames: Frame, place: Any) -> None:
        super().__init__(frames)
        self.place = place


class DebugMachine(Machine):
    def __init__(self) -> None:
        super().__init__()
        self.levels: Counted = Counted()  # pyrefly: ignore[bad-override-mutable-attribute]
        self.watch: Callable | None = None
        self.resumed: deque[Captured] = deque(maxlen=64)  # the continuations called last
        self.floor: tuple | None = None  # as in history.Since
        self.exchanged = False
        self.sweep_step: Callable = self._sweep_step  # one object, so that it can be looked up

    def call(self, f: Value, *args: Value) -> Value:
        """A nested run is one step of the operation that asks for it: after it, the program is at that operation.  The
        visit keeps the last number, as a sweep comes to what is done from now on before what the nested run did."""
        place, visit = HERE.place, HERE.visit
        exchanged = self.exchanged
        value = super().call(f, *args)
        HERE.place, self.exchanged = place, exchanged
        if visit and HERE.visit is not visit:
            HERE.visit = HERE.visit[0], *visit[1:]
        return value

    def apply(self, f: Value, args: tuple, k: Frame) -> State:
        if f.__class__ is Captured:
            self.resumed.append(f)
            if k is self.end and len(args) == 1:
                self._exchanging()
        if f.__class__ is not Pullback:
            return super().apply(f, args, k)
        sweep = Sweep(f, args[0])
        frame = (swept, sweep, self._more(args, k))
        if not sweep.nodes:  # the result does not depend on the input
            return swept(f.result(sweep), frame)
        return self.sweep_step, 0, frame

    def captured(self, k: Frame) -> Captured:
        """The continuation from here on to the prompt.  The program goes on without it."""
        self._exchanging()
        return Captured(k, HERE.place)

    def _exchanging(self) -> None:
        """The chain above what it continues with is exchanged."""
        self.exchanged = self.exchanged or self.meta is self.floor

    def _end(self, value: Value, k: Frame) -> State:
        left = self.meta
        state = super()._end(value, k)
        if left is self.floor:
            self.floor, self.exchanged = self.meta, False
        return state

    def recorded(self, pullback: Pullback) -> Value:
        return recorded(pullback)

    def _sweep_step(self, start: int, frame: Frame) -> State:
        """Pass back through the nodes of one visit of a line."""
        sweep: Sweep = frame[1]
        sweep.watch = self.watch  # the one of now: a sweep that is repeated was perhaps begun with another
        if (i := sweep.go(start)) < len(sweep.nodes):
            return self.sweep_step, i, frame
        return swept(sweep.pullback.result(sweep), frame)


def swept(value: Value, frame: Frame) -> State:
    """The frame of a sweep: it passes the gradient on."""
    k = frame[2]
    return k[0], value, k
