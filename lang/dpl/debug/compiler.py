"""Core -> code that the debugger can stop: every point is a step of the machine, and every operation says where it is.

The rest is the interpreter's.  Code of the library has no points; what it computes belongs to the user's call.
"""
# ruff: noqa: RUF005 (environments grow by concatenation, as in the interpreter)

from __future__ import annotations

from collections.abc import Callable, Set
from math import isfinite
from typing import Any

from dpl.core import term as c
from dpl.core import ty as t
from dpl.debug.journal import Journal
from dpl.debug.machine import DebugMachine
from dpl.debug.points import MOVES, Place, Places, Point
from dpl.eval.code.code import Code, Run, Scope, at_once
from dpl.eval.code.loops import compile_build
from dpl.eval.code.terms import TermCompiler
from dpl.eval.values.active import HERE
from dpl.eval.values.value import Value
from dpl.node import entity

OUTSIDE = frozenset({"time", "env", "read_text", "read_bytes", "read_line", "write_text", "write_bytes"})


@entity
class Instruments:
    """What code tells the debugger.  `points` and `waits` grow as functions are compiled."""

    places: Places
    journal: Journal
    points: dict[Callable, tuple[Place, Scope]]  # the step at a point
    waits: dict[Callable, tuple[Place, Scope]]  # the resumption of a frame -> the term that it waits for
    compiled: Callable[[Callable, Place], object]  # told of each new point
    results: Set[int] = frozenset()  # the identities of calls whose results are watched
    watch: Callable | None = None  # called with each operation: (place, name, operands, result)
    watch_results: Callable[[Value], object] | None = None
    visits: int = 0


class DebugCompiler(TermCompiler):
    """Makes code that tells the debugger where it is, and what operations and terms give, as `instruments` ask."""

    machine: DebugMachine  # pyrefly: ignore[bad-override-mutable-attribute]
    instruments: Instruments  # set before the first compilation

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.after: dict[int, Place] = {}  # last operands of calls, with the place of the call
        self.scopes: dict[int, Scope] = {}

    def compile(self, term: c.Term, scope: Scope) -> Code:
        told = self.instruments
        place = told.places.of.get(id(term))
        after = self.after.pop(id(term), None)
        if place is not None:
            self.scopes[id(term)] = scope
            if isinstance(term, c.App):
                self.after[id(term.arg)] = place
        code = self.plain(term, scope)
        if place is not None and id(term) in told.results:
            code = self.telling(code, place, scope)
        if place is not None and (point := told.places.points.get(id(term))):
            code = self.stopping(code, place, point, scope)
        return self.settling(code, after, scope) if after else code

    def plain(self, term: c.Term, scope: Scope) -> Code:
        """The code without a stop."""
        match term:
            case c.Build():
                return compile_build(self, term, scope, persistent)
            case c.Shift():
                body, end = self.compile(term.body, scope.bind(term.name)).run, self.machine.end
                captured = self.machine.captured
                return Code(lambda env, k: body(env + (captured(k),), end))
            case _:
                return super().compile(term, scope)

    def stopping(self, code: Code, place: Place, point: Point, scope: Scope) -> Code:
        told, run = self.instruments, code.run

        def stop(env: tuple, k: tuple) -> tuple:
            told.visits += 1
            HERE.visit = told.visits, stop, env, k
            HERE.place = place
            return run(env, k)

        told.points[stop] = place, scope
        told.compiled(stop, place)
        return Code(lambda env, k: (stop, env, k))

    def settling(self, code: Code, place: Place, scope: Scope) -> Code:
        """The code of a call's last operand: after it, the program is at the call."""
        if direct := code.direct:

            def settled(env: tuple) -> Value:
                value = direct(env)
                HERE.place = place
                return value

            return at_once(settled)
        run = code.run

        def settle(value: Value, frame: tuple) -> tuple:
            HERE.place = place
            k = frame[2]
            return k[0], value, k

        self.instruments.waits[settle] = place, scope
        return Code(lambda env, k: run(env, (settle, env, k)))

    def telling(self, code: Code, place: Place, scope: Scope) -> Code:
        """The code of a call that shows its result to whoever watches."""
        told = self.instruments

        def tell(value: Value) -> Value:
            if told.watch_results:
                HERE.place = place
                told.watch_results(value)
            return value

        if direct := code.direct:
            return at_once(lambda env: tell(direct(env)))
        run = code.run

        def arrived(value: Value, frame: tuple) -> tuple:
            k = frame[2]
            return k[0], tell(value), k

        told.waits[arrived] = place, scope
        return Code(lambda env, k: run(env, (arrived, env, k)))

    def note(self, resume: Callable, term: c.Term) -> None:
        super().note(resume, term)
        place = self.instruments.places.of.get(id(term))
        if place is not None and id(term) in self.scopes:
            self.instruments.waits[resume] = place, self.scopes[id(term)]

    # ---- primitives -------------------------------------------------------------------------------------------------

    def implementation(self, term: c.Prim, types: tuple[t.Ty, ...]) -> Callable:
        told = self.instruments
        if term.op == "assign":
            return told.journal.assign
        run = super().implementation(term, types)
        if term.op in OUTSIDE:
            run = told.journal.asked(run)
        place = told.places.of.get(id(term))
        return self.watched(run, term.op, place, len(term.args))

    def watched(self, run: Callable, name: str, place: Place | None, arity: int) -> Callable:
        """The operation; it says where it is, and shows its result to whoever watches."""
        told: Any = self.instruments
        shown = same if name in MOVES else own

        def unary(x: Value) -> Value:
            if place:
                HERE.place = place
            value = run(x)
            if told.watch:
                value = shown(value)
                told.watch(place, name, (x,), value)
            return value

        def binary(x: Value, y: Value) -> Value:
            if place:
                HERE.place = place
            value = run(x, y)
            if told.watch:
                value = shown(value)
                told.watch(place, name, (x, y), value)
            return value

        def general(*args: Value) -> Value:
            if place:
                HERE.place = place
            value = run(*args)
            if told.watch:
                value = shown(value)
                told.watch(place, name, args, value)
            return value

        return {1: unary, 2: binary}.get(arity, general)


def same(value: Value) -> Value:
    return value


def own(value: Value) -> Value:
    """A number that is not finite as an object of its own: functions give one NaN for all that have none, and the
    identity of a value tells which operation made it."""
    return value * 1.0 if value.__class__ is float and not isfinite(value) else value


# ---- comprehensions -------------------------------------------------------------------------------------------------


def persistent(run: Run, finish: Callable, check: Callable) -> tuple[Callable, Callable]:
    """As `growing` in the interpreter, but the elements are a chain: states of the past keep their own."""

    def resume(element: Value, frame: tuple) -> tuple:
        env, n, i, elements = frame[1]
        if elements:
            check(elements[0], element)
        return turn(env, n, i + 1, (element, elements), frame[2])

    def turn(env: tuple, n: int, i: int, elements: tuple | None, k: tuple) -> tuple:
        if i < n:
            return run(env + (i,), (resume, (env, n, i, elements), k))
        return k[0], finish(unrolled(elements), env), k

    def start(env: tuple, n: int, k: tuple) -> tuple:
        return turn(env, n, 0, None, k)

    return start, resume


def unrolled(elements: tuple | None) -> list:
    found = []
    while elements:
        element, elements = elements
        found.append(element)
    found.reverse()
    return found
