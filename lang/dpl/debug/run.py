"""A run that can stop anywhere and go in both directions of time.

    run = Run(program, args, out)
    run.forward(armed, check)      until check(hit) or the end
    run.backward(armed, check)     to the last hit before now
    run.go_to(time)

Time is counted in steps of the machine, and a run from a moment repeats itself exactly.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

from dpl import host
from dpl.core import term as c
from dpl.core import ty as t
from dpl.debug.compiler import DebugCompiler, Instruments
from dpl.debug.history import History, Moment, Since, Stops, between
from dpl.debug.journal import Journal
from dpl.debug.machine import DebugMachine, swept
from dpl.debug.points import Place, Places
from dpl.diagnostics import DplError
from dpl.eval.code.code import root
from dpl.eval.code.control import with_pullback
from dpl.eval.machine.failure import for_user, in_path
from dpl.eval.machine.machine import Finished
from dpl.eval.machine.outside import ProgramExit, Writable
from dpl.eval.run import Interpreter, tail_of
from dpl.eval.values.active import HERE
from dpl.eval.values.instance import type_params
from dpl.eval.values.memory import out_of_memory
from dpl.eval.values.value import Cell, Value
from dpl.garbage import collected_seldom, collecting, set_aside
from dpl.node import node
from dpl.source import Span

PACE = 0.01  # seconds of work between moments
MOST = 1 << 14  # steps between looks at the clock
LOOKS = 128  # moments between searches for young cycles, where none are made otherwise
FINE = 64  # parts of what lies between two moments, for a way back
SHORT = 8  # steps: shorter parts are not worth a moment

Armed = Collection[Callable] | None  # None: nothing is armed, and nothing can become so
Check = Callable[[], object]


class Halt(Exception):
    """Raised by whoever watches operations: the run stops before the step in which this happens."""

    def __init__(self, why: Any) -> None:
        self.why = why


@node
class Ended:
    """The program has ended, by itself, by `exit CODE`, or by an error."""

    code: int = 0
    error: DplError | None = None


@node
class Interrupted:
    """Someone asked the run to stop.  It may have left a step for that, before which it stands."""

    left_step: bool = False


class Listener:
    """Someone who wants to know the points of a program as they are compiled."""

    def restarted(self) -> None:
        """The program starts again: all points are forgotten."""

    def compiled(self, stop: Callable, place: Place) -> None:
        """`stop` is the step at a point."""


class Debugged(Interpreter):
    MACHINE = DebugMachine
    COMPILER = DebugCompiler
    watching: Callable[[bool], Any] = staticmethod(lambda _on: None)  # switches watching of operations off and on

    def _lookup(self, name: str, types: tuple, sizes: tuple = ()) -> Value:
        """As in the interpreter.  A value of the library that is computed now is not part of the program's story."""
        here, self_watch = (HERE.place, HERE.visit), self.watching(False)
        try:
            return super()._lookup(name, types, sizes)
        finally:
            HERE.place, HERE.visit = here
            self.watching(self_watch)


class Run:
    def __init__(
        self, program: c.Program, args: Sequence[str], out: Writable, given: Mapping[str, Value] | None = None
    ) -> None:
        """`given` are the values of definitions that are not computed."""
        self.program = program
        self.given = given or {}
        self.args, self.out = args, out
        self.journal = Journal(out)
        self.places = Places()
        for item in program.items:
            self.places.add(item)
        self.listener = Listener()
        self.watch: Callable | None = None  # of operations: (place, name, operands, result)
        self.watch_sweeps: Callable | None = None
        self.results: Set[int] = frozenset()  # the identities of calls whose results are watched
        self.watch_results: Callable[[Value], object] | None = None
        self.interrupted = False  # a pause was asked for
        self.running = False  # steps are made now

    def begin(self) -> None:
        """Start again from nothing."""
        self.journal.again()
        HERE.place = HERE.visit = None
        self.instruments = Instruments(self.places, self.journal, {}, {}, self._compiled, self.results)
        self.interpreter = Debugged(self.program, self.args, self.journal)
        self.interpreter._values.update({(name, (), ()): value for name, value in self.given.items()})
        self.interpreter.watching = self._watching
        self.interpreter._compiler.instruments = self.instruments  # pyrefly: ignore[missing-attribute]
        self.machine: DebugMachine = self.interpreter.machine  # pyrefly: ignore[bad-assignment]
        self.state: tuple[Callable, Any, tuple] = _nothing, None, self.machine.end
        self.history = History(self._graph)
        self.seen: set[Callable] = set()  # the stops since the last moment that is kept
        self.stops: set[Callable] = {self.machine.sweep_step}  # every step at which the run may stop
        self.codes: dict[int, Callable] = {}  # of items
        self.listener.restarted()
        self.met = Stops()  # when it was at the last of them
        self.begins = 0  # the earliest time to which one can go back
        self.time, self.item = 0, -1
        self.ended: Ended | None = None
        self.slice = 64
        self.kept_at = 0.0
        self.looks = 0
        self._next_item()
        self.keep()

    def _compiled(self, stop: Callable, place: Place) -> None:
        self.stops.add(stop)
        self.listener.compiled(stop, place)

    def _watching(self, on: bool) -> bool:
        before = self.instruments.watch is not None
        self.instruments.watch = self.watch if on else None
        self.instruments.watch_results = self.watch_results if on else None
        self.machine.watch = self.watch_sweeps if on else None
        return before

    # ---- states -----------------------------------------------------------------------------------------------------

    def moment(self) -> Moment:
        step, x, k = self.state
        machine = self.machine
        return Moment(self.time, self.item, step, x, k, machine.meta, machine.levels.last, self.journal.mark(),
                      (HERE.place, HERE.visit), self.met,
                      Since(frozenset(self.seen), machine.floor, machine.exchanged))  # fmt: skip

    def keep(self) -> None:
        """Keep this moment in the history."""
        if self.history.keep(self.moment()):
            self.since(Since(floor=self.machine.meta))

    def since(self, told: Since) -> None:
        """Go on from what has happened since the last moment that is kept."""
        self.seen = set(told.met)
        self.machine.floor, self.machine.exchanged = told.floor, told.exchanged

    def restore(self, moment: Moment) -> None:
        """Go back to a moment before now."""
        self.journal.back_to(moment.mark)
        self.time, self.item, self.met = moment.time, moment.item, moment.stops
        self.state = moment.step, moment.x, moment.k
        if moment.step is self.machine.sweep_step:
            moment.k[1].back_to(moment.x)
        self.machine.meta, self.machine.levels.last = moment.meta, moment.level
        HERE.place, HERE.visit = moment.here
        self.ended = Ended() if moment.step is _nothing else None  # a program without items ends where it starts
        self.history.drop_after(moment.time)
        is_kept = bool(self.history.moments) and self.history.moments[-1] is moment
        self.since(Since(floor=moment.meta) if is_kept else moment.since)

    def _graph(self, moment: Moment) -> int:
        """The level of the outermost gradient that is being computed, or 0."""
        level, k, meta = 0, moment.k, moment.meta
        while True:
            while k is not self.machine.end:
                if k[0] is swept:
                    level = k[1].level
                elif k[0] is with_pullback:
                    level = k[1][0]
                k = k[2]
            if meta is None:
                return level
            k, meta = meta

    def _next_item(self) -> None:
        """Go to the first state of the next item that does anything."""
        end = self.machine.end
        while self.item + 1 < len(self.program.items):
            self.item += 1
            types: tuple[t.Ty, ...] | None = ()
            match self.program.items[self.item]:
                case c.Do(body=body):
                    params = ()
                case c.Def(name=name, params=params, body=body) as item if name not in self.given:
                    if (types := self.interpreter.types_in_turn(item)) is None:
                        continue
                case _:
                    continue
            if self.item not in self.codes:
                self.codes[self.item] = self.interpreter._compiler.compile(body, root()).run
            inside = self.interpreter.types.extend(type_params(params), types) if types else self.interpreter.types
            self.state = self.codes[self.item], (inside,), end
            if self.state[0] in self.stops:
                self.met = Stops(self.time, self.met.last)
                self.seen.add(self.state[0])
            return
        self.ended = Ended()
        self.state = _nothing, None, end

    def _item_done(self, value: Value) -> None:
        item = self.program.items[self.item]
        if isinstance(item, c.Def):  # a second run keeps the value that compiled code holds already
            types = self.interpreter.types_in_turn(item)
            self.interpreter._values.setdefault((item.name, types, ()), value)
        self._next_item()

    # ---- forward ----------------------------------------------------------------------------------------------------

    def forward(self, armed: Armed = None, check: Check = lambda: True, limit: int | None = None) -> object:
        """Run until `check` is true at an armed step, to the time `limit`, or to the end.  Returns what `check` said,
        an Ended, an Interrupted, what was thrown by a Halt, or None at the limit.  KeyboardInterrupt, raised in the
        thread, leaves a step that takes long, as a loop in one line: the run stands before it then."""
        within, self.running = self.running, True
        try:
            with collected_seldom(), collecting(limit is None or gc.isenabled()):
                return self._forward(armed, check, limit)
        except KeyboardInterrupt:
            self.interrupted = False
            self.renew()
            return Interrupted(left_step=True)
        finally:
            self.running = within

    def _forward(self, armed: Armed, check: Check, limit: int | None) -> object:
        while self.ended is None and (limit is None or self.time < limit):
            if self.interrupted:  # between steps, or before the first one
                self.interrupted = False
                return Interrupted()
            self._keep()
            until_check = self.machine.most_frames - self.time % self.machine.most_frames
            if until_check == self.machine.most_frames and self._is_beyond_limits(repeats=limit is not None):
                return self.ended
            steps = min(self.slice, until_check, self.slice if limit is None else limit - self.time)
            begin = host.current.clock()
            found = self._run(steps, armed, check)
            self._adapt(host.current.clock() - begin)
            if found is not None:
                return found
        return self.ended if limit is None or self.time < limit else None

    def _keep(self) -> None:
        now = host.current.clock()
        if now - self.kept_at >= PACE or now < self.kept_at:
            self.kept_at = now
            self.looks += 1
            if self.looks % LOOKS == 0 and not gc.isenabled():  # a way back may be long
                gc.collect(1)
            self.keep()
            self.journal.trim()
            if not self.journal.reaches(self.history.moments[0].mark):
                self.history.drop_before(self.journal.reaches)

    def _adapt(self, seconds: float) -> None:
        """Choose the number of steps so that they take a small part of PACE: then a step that takes long lies between
        two moments with few others."""
        if seconds > PACE / 8:
            self.slice = max(1, int(self.slice * PACE / 16 / seconds))
        elif seconds < PACE / 32:
            self.slice = min(MOST, self.slice * 2)

    def _run(self, steps: int, armed: Armed, check: Check) -> object:
        step, x, k = self.state
        i, start, stops, clock, meet = 0, self.time, self.stops, host.current.clock, self.seen.add
        last, before, until = self.met.last, self.met.before, clock() + PACE / 4
        try:
            for i in range(1, steps + 1):
                step, x, k = step(x, k)
                if step in stops:
                    last, before = start + i, last
                    meet(step)
                    if armed is not None and step in armed:
                        self._settle((step, x, k), start + i, Stops(last, before))
                        if (found := check()) is not None and found is not False:
                            return found
                    if clock() > until:  # a moment should be kept after a step that takes long
                        break
            self._settle((step, x, k), start + i, Stops(last, before))
            return None
        except Finished as finished:
            self.time, self.met = start + i, Stops(last, before)
            return self._finished(finished.value, armed, check)
        except Halt as halt:
            self._settle((step, x, k), start + i - 1, Stops(last, before))
            return halt.why
        except (DplError, MemoryError) as failure:
            self._settle((step, x, k), start + i - 1, Stops(last, before))
            self._failed(failure if isinstance(failure, DplError) else out_of_memory())
        except ProgramExit as stop:
            self._settle((step, x, k), start + i - 1, Stops(last, before))
            self.ended = Ended(stop.code)
        except KeyboardInterrupt:
            self._settle((step, x, k), start + max(i - 1, 0), Stops(last, before))
            raise
        return self.ended

    def _is_beyond_limits(self, repeats: bool) -> bool:
        """Whether the program ends here, for its calls are too deep or memory is full.  The depth is looked at after
        certain numbers of steps, so a run that is repeated ends where it did; where it has been, memory sufficed."""
        try:
            self.machine._check_depth(self.state[2])
            if not repeats:
                self.machine._check_memory()
        except DplError as failure:
            self._failed(failure)
        return self.ended is not None

    def _failed(self, error: DplError) -> None:
        """The program ends with an error in this state."""
        self.ended = Ended(1, for_user(self._with_path(error), self.interpreter._own, self._last()))

    def _settle(self, state: tuple[Callable, Any, tuple], time: int, met: Stops) -> None:
        """The run is in this state now: the one that is reached, or the one before a step that failed."""
        self.state, self.time, self.met = state, time, met

    def _finished(self, value: Value, armed: Armed, check: Check) -> object:
        try:
            self._item_done(value)
        except DplError as error:  # of a definition that is evaluated at its first mention
            self.ended = Ended(1, for_user(error, self.interpreter._own, self._last()))
        if self.ended is None and armed is not None and self.state[0] in armed and (found := check()):
            return found
        return self.ended

    def _with_path(self, error: DplError) -> DplError:
        step, _, k = self.state
        return in_path(error, self.machine._sites(step, k))

    def _last(self) -> Span:
        """The place of what the item does last."""
        return tail_of(self.program.items[self.item].body)

    def change(self, cell: Cell, value: Value) -> None:
        """Change a reference.  A run from an earlier moment would not repeat that, so the past begins here."""
        cell.content = value
        self.history.moments = [self.moment()]
        self.begins = self.time

    # ---- back -------------------------------------------------------------------------------------------------------

    def go_to(self, time: int) -> None:
        """Go to a time in the past or the future.  Nothing stops on the way."""
        if time < self.time or self.ended:
            self.restore(self._before(time))
        on = self._watching(False)
        self.repeat(time)
        self._watching(on)

    def repeat(self, time: int) -> None:
        """Run to a time at which the run has been before.  It cannot be interrupted: the run would be elsewhere."""
        while isinstance(self.forward(limit=time), Interrupted):
            pass

    def renew(self) -> None:
        """Go back to the beginning of a step that was left in the middle."""
        time = self.time
        self.restore(self._before(time))
        self.go_to(time)

    def _before(self, time: int) -> Moment:
        """A moment at or before this time; the start, if all others are gone."""
        found = self.history.before(time)
        if found is None and self.begins:
            found = self.history.moments[0]
        if found is None:
            self.begin()
            found = self.history.moments[0]
        return found

    def backward(
        self, armed: Collection[Callable], check: Check = lambda: True,
        passes: Callable[[Moment, Moment], bool] = lambda _from, _to: False,
    ) -> object:  # fmt: skip
        """Go to the last armed step before now at which `check` is true; to the start if there is none.  Returns what
        `check` said, None, or Interrupted.  `passes` says whether `check` is surely false between moments."""
        on = self._watching(False)
        try:
            with set_aside():  # what moments hold: a search through it takes a second
                return self._backward(armed, check, passes)
        finally:
            self._watching(on)

    def _backward(self, armed: Collection[Callable], check: Check, passes: Callable[[Moment, Moment], bool]) -> object:
        limit = self.met.earlier(self.time) + 1
        while limit > self.begins:
            self.restore(self._before(limit - 1))
            if self._refined(limit - 1) is not None:
                return Interrupted()
            self.restore(self._before(limit - 1))
            hits: list[tuple[object, Moment]] = []
            start = self.history.moments[-1]
            if self.state[0] in armed and (found := check()):
                hits.append((found, self.moment()))
            while self.time < limit - 1 and not self.ended:
                found = self.forward(armed, check, limit - 1)
                if isinstance(found, Interrupted):
                    return found
                if found is not None and not self.ended:
                    hits.append((found, self.moment()))
            if hits:
                self.restore(hits[-1][1])
                return hits[-1][0]
            limit = self._skipped(start, set(armed), passes)
        self.go_to(self.begins)
        return None

    def _refined(self, time: int) -> object:
        """Keep more moments from now to a time: a look at a stop costs many steps, so it begins
        shortly before that time.  Returns Interrupted or None."""
        size = (time - self.time) // FINE
        while size >= SHORT and self.time < time:
            if (found := self.forward(limit=min(self.time + size, time))) is not None:
                return found
            self.keep()
        return None

    def _skipped(self, start: Moment, armed: set[Callable], passes: Callable[[Moment, Moment], bool]) -> int:
        """After the last stop before a moment that may be a hit: the time between two moments is left out if nothing
        armed was met, or if it is passed."""
        moments, first = self.history.moments, start
        while (limit := first.stops.earlier(first.time) + 1) > self.begins:
            i = self.history.index(limit - 1)
            if not 0 <= i < len(moments) - 1:
                break
            first, then = moments[i], moments[i + 1]
            if not armed.isdisjoint(between(first, then)) and not passes(first, then):
                break
        return limit


def _nothing(x: Any, k: tuple) -> tuple:
    return _nothing, x, k
