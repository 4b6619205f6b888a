"""The debugger: breakpoints, and moving through a run in both directions of time.  It has no face of its own.

debugger = Debugger(program, modules, args, out)
debugger.start()
debugger.go("continue")        a Stop
debugger.go("step", back=True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from dpl.core import term as c
from dpl.core import ty as t
from dpl.debug.around import Around
from dpl.debug.breakpoints import Breakpoint, Refused, located, moved, source_named
from dpl.debug.depths import Depths
from dpl.debug.expressions import Expressions
from dpl.debug.flows import cotangent, is_forward, tangent
from dpl.debug.history import Moment, between
from dpl.debug.inspect import Frame, Position, Variable, activation, active_levels, entered, running_sweeps
from dpl.debug.nonfinite import Finite, Origin, always
from dpl.debug.parts import Part
from dpl.debug.points import Place
from dpl.debug.run import Ended, Interrupted, Listener, Run
from dpl.debug.sweeps import Sweep
from dpl.debug.tail_calls import TailCalls
from dpl.debug.values import Describer, concrete, type_text
from dpl.diagnostics import DplError
from dpl.eval.machine.failure import shown_name
from dpl.eval.machine.outside import Writable
from dpl.eval.values.instance import is_type
from dpl.eval.values.value import Cell, Value
from dpl.node import node, replace
from dpl.regex import regex
from dpl.source import NOWHERE, Source
from dpl.syntax.load import MAIN, Module

NEAR = 10_000  # steps
SWEPT = "the reverse sweep has come to the inputs: their derivatives are complete"
MOVES = ("step", "next", "out", "continue", "until")


@node
class Stop:
    """Why the program has stopped: `reason` is step, breakpoint, error, nonfinite, pause, start or end."""

    reason: str
    text: str = ""
    breakpoint: Breakpoint | None = None


AT_LEVEL = regex(r"\s@\s+(-?\d+)\s*$")  # `d x @ 2`


class Debugger(Listener):
    def __init__(
        self, program: c.Program, modules: Sequence[Module], args: Sequence[str], out: Writable,
        given: Mapping[str, Value] | None = None,
    ) -> None:  # fmt: skip
        self.program, self.modules = program, modules
        self.main: Source = modules[-1].source
        self.run = Run(program, args, out, given)
        self.run.listener = self
        self.expressions = Expressions(modules)
        self.breakpoints: dict[int, Breakpoint] = {}
        self.numbers = 0
        self.armed: set[Callable] = set()
        self.log: Callable[[str], object] = lambda _text: None
        self.finite = Finite(self.run)
        self.stopped = Stop("start")
        self.selected = 0  # the frame in whose scope expressions are

    def start(self) -> None:
        """(Re)start the program and stop before its first item."""
        self.run.begin()
        self.finite.clear()
        for b in self.breakpoints.values():
            b.met = 0
        self.stopped, self.selected = Stop("start"), 0
        self.describer = Describer(self.run.interpreter.shower)

    # ---- breakpoints ------------------------------------------------------------------------------------------------

    def add_breakpoint(self, text: str, condition: str = "", hits: int = 1, message: str = "") -> Breakpoint:
        """Raises Refused if a part has no meaning.  What a condition's names stand for is known only when it is met."""
        for part in (condition, *braced(message)[1::2]):
            if part:
                self.expressions.parsed(part)
        if hits < 1:
            raise Refused("hits are counted from 1 on")
        points, event, is_reverse, full = located(self.run.places, self.main, text)
        self.numbers += 1
        made = Breakpoint(self.numbers, full, points, event, is_reverse, condition, hits, message,
                          moved(text, points))  # fmt: skip
        self.breakpoints[made.number] = made
        self.arm()
        return made

    def take_breakpoints(self, other: Debugger) -> None:
        """Have the breakpoints of another debugger, with their numbers.  Places that this program lacks are not met."""
        self.numbers = other.numbers
        for number, b in other.breakpoints.items():
            spots = {(p.span, p.is_entry) for p in b.points}
            mine = {p for points in self.run.places.by_source.values() for p in points if (p.span, p.is_entry) in spots}
            self.breakpoints[number] = replace(b, points=frozenset(mine))
        self.arm()

    def lines(self, path: str) -> list[int]:
        """The lines of a source at which the program can stop."""
        return self.run.places.lines(source_named(self.run.places, self.main, path))

    def delete_breakpoint(self, number: int) -> None:
        """Raises Refused if there is no such breakpoint."""
        if number not in self.breakpoints:
            raise Refused(f"there is no breakpoint {number}")
        del self.breakpoints[number]
        self.arm()

    def clear_breakpoints(self) -> None:
        """Deletes all breakpoints."""
        self.breakpoints = {}
        self.arm()

    def restarted(self) -> None:
        self.armed.clear()
        self.arm()

    def compiled(self, stop: Callable, place: Place) -> None:
        if any(place.point in b.points and not b.is_reverse for b in self.breakpoints.values()):
            self.armed.add(stop)

    def arm(self) -> None:
        """Find the steps at which a breakpoint may be met."""
        if not hasattr(self.run, "instruments"):
            return
        self.armed.clear()
        for stop, (place, _) in self.run.instruments.points.items():
            self.compiled(stop, place)
        if any(b.is_reverse for b in self.breakpoints.values()):
            self.armed.add(self.run.machine.sweep_step)
        self.finite.watch(any(b.event == "nonfinite" for b in self.breakpoints.values()))

    def met(self, counting: bool = True) -> Stop | None:
        """The breakpoint at which the program is, if there is one."""
        sweeping = self.run.state[0] is self.run.machine.sweep_step
        if not self.breakpoints or (top := self.position().top) is None:
            return None
        here = entered(self.run, self.run.state[2][1], self.run.state[1]) if sweeping else {top.place.point}
        stopped = None
        for b in self.breakpoints.values():
            if sweeping != b.is_reverse or not (self.begins_sweep() if b.event == "rev" else b.points & here):
                continue
            if self.holds(b, top):
                b.met += counting
                if counting and b.met < b.hits:
                    continue
                if not b.message:
                    stopped = stopped or Stop("breakpoint", str(b), b)
                elif counting:
                    self.log(self.interpolated(b.message, top))
        return stopped

    def begins_sweep(self) -> bool:
        return self.run.state[1] == 0

    def holds(self, b: Breakpoint, frame: Frame) -> bool:
        """True if a breakpoint has no condition, or if it holds here.  One that cannot be evaluated stops, too."""
        if not b.condition:
            return True
        try:
            value, ty = self.evaluate(b.condition, frame)
            if ty == t.BOOL:
                return value is True
            self.log(f"{b}: the condition has type {type_text(ty)}, not bool")
        except (DplError, Refused) as error:
            self.log(f"{b}: {error}")
        return True

    def interpolated(self, message: str, frame: Frame) -> str:
        """A message with its parts in braces evaluated."""
        return "".join(self.said(part, frame) if i % 2 else part for i, part in enumerate(braced(message)))

    def said(self, text: str, frame: Frame) -> str:
        """The value of an expression on one line, or why there is none."""
        try:
            value, ty = self.evaluate(text, frame)
            return self.describer.brief(value, ty)
        except (DplError, Refused) as error:
            return f"<{error}>"

    # ---- moving -----------------------------------------------------------------------------------------------------

    def go(self, move: str, back: bool = False, line: int | None = None) -> Stop:
        """Move until something happens."""
        self.selected = 0
        if back:
            found = self.go_back(move, line)
            self.finite.clear()
            start = Stop("start", "this is the start of the program")
            self.stopped = self.outcome(found) if isinstance(found, (Stop, Interrupted)) else start
            return self.stopped
        if self.run.ended:
            self.stopped = self.at_end(self.run.ended)
            return self.stopped
        if self.stopped.reason == "nonfinite":
            self.finite.pass_by()
        armed, check = self.plan(move, False, line)
        self.stopped = self.outcome(self.run.forward(armed, check))
        return self.stopped

    def go_back(self, move: str, line: int | None) -> object:
        """Move back.  Between breakpoints, the calls that are stepped over are passed without a look."""
        position = self.position()
        at_end = self.run.ended is not None and self.run.ended.error is None
        if move not in ("next", "out") or (position.top is None and not at_end):
            armed, check = self.plan("step" if move in ("next", "out") else move, True, line)
            return self.run.backward(armed or set(), check)
        depths = Depths(self.run, self.called_from(position), move == "out")

        def back_there() -> Stop | None:
            deeper = depths.is_deeper(self.called_from(self.position()))
            return self.met(False) or (None if deeper else self.stepped())

        def passes(first: Moment, then: Moment) -> bool:
            return self.armed.isdisjoint(between(first, then)) and depths.stays_deeper(first, then)

        return self.run.backward(self.run.stops, back_there, passes)

    def outcome(self, found: object) -> Stop:
        """Why the program stands where it does."""
        match found:
            case Stop():
                return found
            case Origin():
                return Stop("nonfinite", found.title)
            case Interrupted(left_step=left):
                if not left:  # to a line, if there is one soon
                    self.run.forward(self.run.stops, lambda: True, self.run.time + NEAR)
                return Stop("pause", "paused before a step that takes long" if left else "paused")
            case Ended():
                return self.at_end(found)
            case _:
                return Stop("step")

    def at_end(self, ended: Ended) -> Stop:
        """The stop at the end of the program, or at an error."""
        if ended.error is not None:
            first = ended.error.diagnostics[0]
            return Stop("error", f"{first.code}: {first.title}")
        return Stop("end", "the program has ended" + (f" with exit code {ended.code}" if ended.code else ""))

    def plan(self, move: str, back: bool, line: int | None) -> tuple[set[Callable] | None, Callable[[], Stop | None]]:
        """The steps to look at, and the test whether to stop there."""
        if move == "continue":
            return (self.armed if self.breakpoints or back else None), lambda: self.met(not back)
        wanted = self.test(move, line)

        def check() -> Stop | None:
            return self.met(not back) or (self.stepped() if wanted() else None)

        return self.run.stops, check

    def stepped(self) -> Stop:
        return Stop("step", SWEPT if self.position().is_swept else "")

    def test(self, move: str, line: int | None) -> Callable[[], bool]:
        """Whether to stop at a point."""
        if move == "step":
            return lambda: True
        if move == "until":
            return lambda: self.line_now() == line
        position = self.position()
        if position.top is None:
            return lambda: True
        around = Around(self.run, position.top, self.called_from(position))

        def ends() -> bool:
            here = self.position()
            if here.top is None:
                return True
            k = self.called_from(here)
            return around.waits(here.top, k) or (move == "next" and around.is_own(here.top, k))

        return ends

    def called_from(self, position: Position) -> tuple:
        """The chain with which the current function was called.  A sweep counts as a function."""
        if position.sweep:
            return self.run.state[2]
        return activation(self.run, position.top, position.k) if position.top else position.k

    def line_now(self) -> int | None:
        """The line of the main file at which the program is."""
        top = self.position().top
        return top.place.point.line if top and top.place.span.source == self.main else None

    # ---- looking ----------------------------------------------------------------------------------------------------

    def position(self) -> Position:
        """Where the program stands now."""
        return Position(self.run)

    def frames(self) -> list[Frame]:
        """The calls that wait, the innermost first."""
        return [*self.position().frames()]

    def tail_calls(self) -> TailCalls:
        """The tail calls that led here.  Frames that were asked for before are then out of date."""
        return TailCalls(self.run)

    def frame(self) -> Frame | None:
        """The call that the user has chosen; None at the end of the program."""
        found = None
        for found in islice(self.position().frames(), self.selected + 1):  # noqa: B007
            pass
        return found

    def scope(self, frame: Frame | None = None) -> list[Variable]:
        """The variables of a call, or of the one that the user has chosen."""
        frame = frame or self.frame()
        return frame.variables() if frame else []

    def top_level(self) -> list[Variable]:
        """The values of the program's own definitions so far, without functions."""
        run, own = self.run, {module.source for module in self.modules}
        found = []
        done = run.item + (run.ended is not None and run.ended.error is None)
        for item in run.program.items[:done]:
            if not isinstance(item, c.Def) or isinstance(item.ty, t.Fn) or item.body.span.source not in own:
                continue
            value = run.interpreter._values.get((item.name, (), ()))
            if value is None or "," in item.name:  # `let (a, b) = ...` also makes a definition `a,b`
                continue
            kind = "reference" if isinstance(value, Cell) else "top level"
            name = shown_name(item.name).removeprefix(f"{MAIN}.")
            found.append(Variable(name, value, concrete(item.ty, value, run.interpreter.types), kind))
        return found

    def evaluate(self, text: str, frame: Frame | None = None) -> tuple[Value, t.Ty]:
        """The value of an expression in the scope of a frame.  In it, `d x` is the derivative that belongs to x."""
        at = AT_LEVEL.search(text)
        plain, level = (text[: at.start()], at[1]) if at else (text, "")
        asked = [] if self.has_own_d(frame) else self.expressions.derivatives(plain)
        if not asked:
            value, ty = self.in_scope(text, frame)
            return value, concrete(ty, value, self.run.interpreter.types)
        given = []
        for i, (whole, start, end, of) in reversed([*enumerate(asked)]):  # the last first: places before it stay
            value, ty = self.derivative(of, level, frame)
            if whole:
                return value, ty
            given.append(Variable(f"d'{i}", value, ty, "local"))
            plain = f"{plain[:start]}d'{i}{plain[end:]}"
        value, ty = self.in_scope(plain, frame, given)
        return value, concrete(ty, value, self.run.interpreter.types)

    def has_own_d(self, frame: Frame | None) -> bool:
        """Whether the program has a function `d` here; a number of this name cannot be applied."""
        own = next((v for v in self.scope(frame) if v.name == "d"), None)
        return own is not None and isinstance(own.ty, t.Fn)

    def in_scope(
        self, text: str, frame: Frame | None = None, given: Sequence[Variable] = ()
    ) -> tuple[Value, t.Ty]:  # fmt: skip
        """The value of an expression in the scope of a frame and of what is given, and its type with the sizes that are
        known."""
        frame = frame or self.frame()
        place = frame.place.point.span if frame else NOWHERE
        try:
            return self.expressions.value(self.run, text, [*given, *self.scope(frame)], place)
        except DplError as error:
            unknown = error.diagnostics[0]
            if unknown.code == "E0202" and unknown.span and (told := self.elsewhere(unknown.span.text)):
                raise Refused(told) from None
            raise

    def elsewhere(self, name: str) -> str:
        """Where a name is known that has no value here: in another call, or later in a function that was called."""
        frames = self.frames()
        for i, frame in enumerate(frames):
            if frame.variable(name):
                return f"`{name}` has no value here: it is a variable of {frame.name}, to which `frame {i}` goes"
        of = [p for p in self.run.places.of.values() if any(shown_name(n.name) == name for n in p.names or ())]
        for function in dict.fromkeys(frame.function for frame in frames):
            lines = [place.point.line for place in of if place.point.function is function]
            if lines and min(lines) == self.line_now():
                return f"`{name}` has no value yet: this line makes it"
            if lines:
                return f"`{name}` has no value here: it is known from line {min(lines)} on"
        return ""

    def derivative(self, text: str, level: str, frame: Frame | None = None) -> tuple[Value, t.Ty]:
        """The cotangent that has flowed to an expression so far, or its tangent, at a level that is counted from the
        outermost; by default it is the innermost."""
        value, ty = self.in_scope(text, frame)
        ty = concrete(ty, value, self.run.interpreter.types)
        levels = active_levels(self.run)
        if level:
            if not 0 < int(level) <= len(levels):
                deepest = f"the innermost is {len(levels)}" if levels else "no derivative is being computed"
                raise Refused(f"there is no level {level} here; {deepest}")
            levels = [levels[int(level) - 1]]
        sweeps = [s for s in running_sweeps(self.run) if s.level in levels]
        if sweeps:
            return cotangent(value, sweeps[0]), ty
        forward = [level for level in levels if is_forward(value, level)]
        if forward:
            return tangent(value, forward[-1]), ty
        at_level = f" at level {level}" if level else ""
        raise Refused(f"no derivative is known here: no sweep runs{at_level}, and `{text.strip()}` has no tangent")

    def assign(self, variable: Variable | Part, text: str, frame: Frame | None = None) -> tuple[Value, t.Ty]:
        """Put the value of an expression into a reference.  The future is then another one, and the past ends here."""
        name, cell = variable.name, variable.value
        if not isinstance(cell, Cell):
            raise Refused(f"`{name}` is not a reference, and nothing else can change")
        held = variable.ty.args[0] if isinstance(variable.ty, t.Con) and variable.ty.args else None
        value, ty = self.in_scope(text, frame)
        if not is_type(held) or ty != held:
            wanted = type_text(held) if is_type(held) else "something else"
            raise Refused(f"`{name}` holds {wanted}, not {type_text(ty)}")
        self.run.change(cell, value)
        return value, ty

    def level(self, sweep: Sweep) -> int:
        """The number of a sweep's level, counted from the outermost."""
        levels = active_levels(self.run)
        return levels.index(sweep.level) + 1 if sweep.level in levels else 0

    # ---- what is not finite -----------------------------------------------------------------------------------------

    def find_origin(self) -> Origin | None:
        """The first operation whose result is not finite in the latest item of the program that had one until now.  The
        run is repeated to find it; the program is then there."""
        if self.finite.last is not None and self.stopped.reason == "nonfinite":
            return self.finite.last
        now, items = self.run.time, set()
        found = self.search(now, lambda: items.add(self.run.item))
        if not isinstance(found, Interrupted) and items:
            found = self.search(now, lambda: self.run.item == max(items))
        self.finite.wanted_now = always
        self.arm()
        if isinstance(found, (Origin, Interrupted)):
            self.stopped = self.outcome(found)
        if isinstance(found, Interrupted):
            raise Refused("the search was interrupted; the program is where it had come to")
        if isinstance(found, Origin):
            return found
        if self.run.ended is None:
            self.run.go_to(now)
        return None

    def search(self, until: int, wanted: Callable[[], object]) -> object:
        """Run from the start to the first wanted operation whose result is not finite."""
        self.run.go_to(0)
        self.finite = Finite(self.run, wanted)
        self.finite.watch(True)
        return self.run.forward(limit=until + 1)


def braced(message: str) -> list[str]:
    """The parts of a message: outside and inside of braces, in turns."""
    return message.replace("}", "{").split("{")
