"""Where a stopped program is: its place, the calls that wait, the variables of each, and the sweep, if one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice, zip_longest
from operator import is_
from typing import Any

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.walk import subterms
from dpl.debug.machine import Captured, swept
from dpl.debug.points import Function, Names, Place, Point, bound
from dpl.debug.run import Run
from dpl.debug.sweeps import Sweep
from dpl.debug.values import concrete
from dpl.eval.code.code import Scope, root
from dpl.eval.code.control import coefficients, split, with_pullback
from dpl.eval.machine.failure import shown_name
from dpl.eval.values.active import HERE, Node
from dpl.eval.values.instance import Types
from dpl.eval.values.value import Cell, Con, Value
from dpl.node import entity, node, replace

MOST_LOOKED_AT = 10_000  # nodes of a sweep
MOST_ASKED = 400  # operations that are asked in which call they were done


@node
class Variable:
    """A variable with its value, and its type at the sizes that the value has.  `kind` is local, argument, captured or
    reference."""

    name: str
    value: Value
    ty: t.Ty
    kind: str


@entity
class Frame:
    """A function that is being evaluated, or (`sweep`) differentiated."""

    place: Place
    env: tuple
    scope: Scope
    sweep: Sweep | None = None
    names: Names | None = None  # in scope, if they are not those of the place
    k: tuple | None = None  # the chain that waits for it
    link: tuple | None = None  # of a differentiated function that called another: the link of its chain
    later: Callable[[Frame], Frame] | None = None  # finds it with the variables that it has bound since

    @property
    def name(self) -> str:
        """The name of the function, as the user knows it."""
        name = shown_name(self.place.point.function.name)
        return f"reverse of {name}" if self.sweep else name

    @property
    def function(self) -> Function:
        return self.place.point.function

    def variables(self) -> list[Variable]:
        """The variables in scope, innermost first.  A name that is hidden by another of the same name is left out."""
        return self.later(self).in_scope() if self.later else self.in_scope()

    def in_scope(self) -> list[Variable]:
        types: Types = self.env[0]
        params = {name for name, _ in self.function.params}
        found: dict[str, Variable] = {}
        for local in self.names or self.place.names or ():
            slot = self.scope.slots.get(local.name)
            name = shown_name(local.name)
            if slot is None or slot >= len(self.env) or name in found or name.partition(".")[0] == "_":
                continue
            value = self.env[slot]
            if pattern := self.function.patterns.get(local.name):
                for inner, part, ty in bindings(pattern, value):
                    made = Variable(shown_name(inner), part, concrete(ty, part, types), "argument")
                    found.setdefault(made.name, made)
                continue
            captured = slot < self.scope.held
            kind = "captured" if captured else "argument" if local.name in params else "local"
            kind = "reference" if isinstance(value, Cell) else kind
            found[name] = Variable(name, value, concrete(local.ty, value, types), kind)
        return list(found.values())

    def variable(self, name: str) -> Variable | None:
        """The variable of this name; None if there is none in scope."""
        return next((v for v in self.variables() if v.name == name), None)

    def arguments(self) -> list[Variable]:
        """The arguments of the call that are still in scope, in order."""
        order: list[str] = []
        for name, ty in self.function.params:
            names = bound(self.function.patterns.get(name, c.PVar(ty, name)), None)
            order += [shown_name(inner.name) for inner in names or ()][::-1]
        found = {v.name: v for v in self.in_scope()}
        return [found[name] for name in order if name in found]


def bindings(pattern: c.Pattern, value: Value) -> Iterator[tuple[str, Value, t.Ty]]:
    """The names of a pattern with the parts of a value that they stand for, if it has them."""
    match pattern:
        case c.PVar(ty, name):
            yield name, value, ty
        case c.PAs(ty, inner, name):
            yield name, value, ty
            yield from bindings(inner, value)
        case c.PTuple(_, items) if isinstance(value, tuple):
            for item, part in zip(items, value, strict=True):
                yield from bindings(item, part)
        case c.PCon(arg=arg) if arg is not None and isinstance(value, Con):
            yield from bindings(arg, value.arg)
        case _:
            pass


class Position:
    """The innermost frame of a stopped program, and the chain of those that wait."""

    def __init__(self, run: Run) -> None:
        self.run = run
        told = run.instruments
        step, x, k = run.state
        self.sweep: Sweep | None = None
        self.k: tuple = k
        self.node: Node | None = None  # to which a sweep has come
        self.is_swept = False  # whether the sweep has come to the inputs: nothing more flows
        self.top: Frame | None = None
        if step is run.machine.sweep_step and not run.ended:
            self.sweep, self.k = k[1:]
            assert self.sweep
            self.node = reached(self.sweep, x)
            self.is_swept = self.node is not self.sweep.nodes[x]
            if found := frame_of_node(run, self.node, self.sweep):
                self.top = self.with_later(found)
        elif step in told.points:
            place, scope = told.points[step]
            self.top = Frame(place, x, scope, k=k)
        elif not (run.ended and run.ended.error is None):
            self.top = self.within_step()

    def within_step(self) -> Frame | None:
        """The frame of a step that was left in the middle: the one that it resumes.  A step without a frame of the
        user's belongs to the last stop."""
        told = self.run.instruments
        step, _, k = self.run.state
        if step is k[0] and step in told.waits:
            place, scope = told.waits[step]
            self.k, env = k[2], environment(k[1])
        elif HERE.visit and HERE.visit[1] in told.points:
            _, stop, env, self.k = HERE.visit
            place, scope = told.points[stop]
        else:
            return None
        return Frame(HERE.place or place, env, scope, k=self.k)

    @property
    def is_reverse(self) -> bool:
        """True inside of a reverse sweep."""
        return self.sweep is not None

    def frames(self) -> Iterator[Frame]:
        """The calls, innermost first, also through resets and sweeps.  There may be a million."""
        if last := self.top:
            yield self.with_later(last)
        differentiated = frames_of_node(self.run, self.node, self.sweep) if self.node and self.sweep else iter(())
        for frame in chain(differentiated, waiting(self.run, self.k)):
            if last is None or not is_own(last, frame):
                last = frame
                yield self.with_later(last)
        if last and (outermost := self.item(last)):
            yield self.with_later(outermost)

    def with_later(self, frame: Frame) -> Frame:
        """A frame of the running sweep also knows the variables that its function has bound later."""
        if self.sweep is None or frame.sweep is not self.sweep:
            return frame
        return replace(frame, later=partial(extended, self.run, self.sweep, self.run.state[1]))

    def item(self, inside: Frame) -> Frame | None:
        """The frame of the item of the program, if the outermost call is the last thing that it does."""
        if self.run.ended:
            return None
        end = self.run.program.items[self.run.item].body
        while isinstance(end, (c.Let, c.LetRec)):
            end = end.body
        place = self.run.places.of.get(id(end))
        if place is None or inside.function is place.point.function:
            return None
        return Frame(replace(place, names=None), (self.run.interpreter.types,), root())


def extended(run: Run, sweep: Sweep, i: int, frame: Frame) -> Frame:
    """The frame with all variables that its function has bound later, and that the sweep has therefore passed."""
    found = frame
    passed = islice(reversed(sweep.nodes[:i]), MOST_LOOKED_AT)
    own = {(id(made.visit), id(made.place)): made for made in passed
           if made.place and made.place.point.function is frame.function}  # fmt: skip
    for made in islice(own.values(), MOST_ASKED):
        later = frame_of_node(run, made, sweep)
        if later and len(later.env) > len(found.env) and is_own(later, found):
            found = Frame(frame.place, later.env, later.scope, sweep, later.place.names)
    return found


def reached(sweep: Sweep, i: int) -> Node:
    """The node at which a sweep stands.  The inputs of the function come last: they belong to where it began."""
    while i and sweep.nodes[i].step is None:
        i -= 1
    return sweep.nodes[i]


def calls_of_node(run: Run, made: Node, sweep: Sweep) -> Iterator[Frame]:
    """The calls that waited when a node of a graph was made, innermost first, up to the function that is
    differentiated.  The innermost may be one that has returned."""
    if not made.visit or made.visit[1] not in run.instruments.points:
        return
    _, stop, env, k = made.visit
    place, scope = run.instruments.points[stop]
    yield Frame(place, env, scope, sweep)
    while k is not run.machine.end and not (k[0] is with_pullback and k[1][0] == sweep.level):
        if waits := run.instruments.waits.get(k[0]):
            yield Frame(waits[0], environment(k[1]), waits[1], sweep, link=k)
        k = k[2]


def frames_of_node(run: Run, made: Node, sweep: Sweep) -> Iterator[Frame]:
    """The calls in which a node of a graph was made, innermost first, up to the function that is differentiated."""
    if first := frame_of_node(run, made, sweep):
        yield first
        own = calls_around(run, made, sweep).own(sweep.repeats(made))
        yield from islice(calls_of_node(run, made, sweep), own + 1, None)  # not kept: each node may have thousands


def frame_of_node(run: Run, made: Node, sweep: Sweep) -> Frame | None:
    """The frame in which a node of a graph was made."""
    around = calls_around(run, made, sweep)
    if around.at(0) is None:
        return None
    frame = around.frames[around.own(sweep.repeats(made))]
    place: Place = made.place or frame.place
    return replace(frame, place=place) if frame.function is place.point.function else frame


def calls_around(run: Run, made: Node, sweep: Sweep) -> Calls:
    key = id(made.visit), id(made.place)
    if key not in sweep.calls:
        sweep.calls[key] = Calls(made.place, calls_of_node(run, made, sweep))
    return sweep.calls[key]


class Calls:
    """The calls that waited at the last stop before an operation, innermost first; they are looked at when they are
    needed.  The last stop may be in a call that has returned since: an operation is done after the calls inside of it.
    So a recursive function may do it in several calls after one stop, the innermost first."""

    def __init__(self, place: Place | None, waiting: Iterator[Frame]) -> None:
        self.frames: list[Frame] = []
        self.waiting = waiting
        first = self.at(0)
        self.place: Place | None = place if place or first is None else first.place
        self.calls = calls_in(self.place.term) if self.place else None
        self.found: list[int] = []
        self.search = self.candidates()

    def at(self, i: int) -> Frame | None:
        """Call number `i`, of which 0 is the innermost; None beyond the outermost.  Frames are made when asked for."""
        if i == len(self.frames) and (frame := next(self.waiting, None)) is not None:
            self.frames.append(frame)
        return self.frames[i] if i < len(self.frames) else None

    def own(self, n: int) -> int:
        """The call that has done the operation after it was done n times."""
        n = n if self.calls is not None else 0
        while len(self.found) <= n and (i := next(self.search, None)) is not None:
            self.found.append(i)
        if self.found:
            return self.found[min(n, len(self.found) - 1)]
        return next((i for i, frame in enumerate(self.frames) if self.is_own(frame)), 0)

    def is_own(self, frame: Frame) -> bool:
        return self.place is not None and frame.function is self.place.point.function

    def candidates(self) -> Iterator[int]:
        """The call of the stop, unless a call inside of the operation must come first, and those that waited for such a
        call."""
        last: Frame | None = None
        i = -1
        while (frame := self.at(i := i + 1)) is not None:
            if not self.place or not self.is_own(frame):
                continue
            if i and self.place.span.contains(frame.place.span):
                if last is None or not is_own(last, frame):
                    yield i
                last = frame
            elif last is None and not self.calls:
                yield i
                last = frame


def calls_in(term: c.Term) -> bool | None:
    """Whether a term surely calls a function, for it calls one outside of branches; None if it calls none."""
    found, todo = None, [(term, True)]
    while todo:
        here, is_certain = todo.pop()
        if isinstance(here, c.App):
            if is_certain:
                return True
            found = False
        first = here.cond if isinstance(here, c.If) else here.scrutinee if isinstance(here, c.Match) else None
        is_choice = first is not None or isinstance(here, (c.Lam, c.For, c.While, c.Build))
        todo += [(part, is_certain and (part is first or not is_choice)) for part in subterms(here)]
    return found


def waiting(run: Run, k: tuple) -> Iterator[Frame]:
    """The frames from `k` on, across resets.  A sweep is one, too."""
    meta = run.machine.meta
    while True:
        yield from waiting_here(run, k)
        if meta is None:
            return
        k, meta = meta


def waiting_here(run: Run, k: tuple) -> Iterator[Frame]:
    """The frames of one chain."""
    waits, end = run.instruments.waits, run.machine.end
    while k is not end:
        if k[0] is swept:
            sweep: Sweep = k[1]
            if sweep.now and (frame := frame_of_node(run, sweep.now, sweep)):
                yield frame
        elif found := waits.get(k[0]):
            yield Frame(found[0], environment(k[1]), found[1], k=k[2])
        k = k[2]


def entered(run: Run, sweep: Sweep, i: int) -> set[Point]:
    """The points that a sweep enters with the step at node `i`: that of the node, and those of the calls that led
    there, without the calls in which it is already.  A visit alone does not tell the point: the last stop before an
    operation may be in a call that has returned."""
    if reached(sweep, i) is not sweep.nodes[i]:
        return set()
    calls = frames_of_node(run, sweep.nodes[i], sweep)
    own = next(calls, None)
    before = frames_of_node(run, reached(sweep, i - 1), sweep) if i else iter(())
    return {frame.place.point for frame in ([own] if own else []) + until_shared(calls, before)}


def until_shared(calls: Iterator[Frame], others: Iterator[Frame]) -> list[Frame]:
    """The calls that are not among others.  From the first that both have on they are the same, and need no look."""
    mine: dict[int, Frame] = {}
    theirs: set[int] = set()
    for frame, other in zip_longest(calls, others):
        if other and other.link:
            theirs.add(id(other.link))
        if frame:
            mine[id(frame.link)] = frame
        if (frame and id(frame.link) in theirs) or (other and id(other.link) in mine):
            break
    return [frame for call, frame in mine.items() if call not in theirs]


def resumed(run: Run, k: tuple) -> list[Captured]:
    """The continuations that the program is in: those whose last frame it will return to."""
    last = {id(bottom(taken.frames, run.machine.end)): taken for taken in run.machine.resumed}
    found, meta = [], run.machine.meta
    while True:
        if (here := bottom(k, run.machine.end)) and id(here) in last:
            found.append(last[id(here)])
        if meta is None:
            return found
        k, meta = meta


def bottom(k: tuple, end: tuple) -> tuple | None:
    """The last frame of a chain."""
    last = None
    while k is not end:
        last, k = k, k[2]
    return last


def environment(data: Any) -> tuple:
    """The environment in the data of a frame: it begins with the types."""
    if data and isinstance(data[0], Types):
        return data
    return next(part for part in data if isinstance(part, tuple) and part and isinstance(part[0], Types))


def is_own(inner: Frame, outer: Frame) -> bool:
    """Whether a waiting frame belongs to the same call as the frame inside of it, which has bound more variables."""
    return inner.function is outer.function and inner.sweep is outer.sweep and begins(inner.env, outer.env)


def begins(env: tuple, start: tuple) -> bool:
    """Whether an environment is another one with more variables."""
    return len(env) >= len(start) and all(map(is_, env, start))


def activation(run: Run, frame: Frame, k: tuple) -> tuple:
    """The chain with which the function of a frame was called: `k` without the frames of the function itself."""
    waits, here = run.instruments.waits, frame.place
    while found := waits.get(k[0]):
        place = found[0]
        own = place.point.function is here.point.function and place.extent.contains(here.span)
        if not (own and begins(frame.env, environment(k[1]))):
            break
        k = k[2]
    return k


# ---- derivatives ----------------------------------------------------------------------------------------------------


def active_levels(run: Run) -> list[int]:
    """The levels of the derivatives that are being computed, outermost first."""
    found: set[int] = set()
    for frame in all_frames(run):
        if frame[0] is swept:
            found.add(frame[1].level)
        elif frame[0] is with_pullback or frame[0] is coefficients:
            found.add(frame[1][0])
        elif frame[0] is split:
            found.add(frame[1])
    return sorted(found)


def all_frames(run: Run) -> Iterator[tuple]:
    """The frames of the machine, innermost first, across resets."""
    k, meta = run.state[2], run.machine.meta
    while True:
        while k is not run.machine.end:
            yield k
            k = k[2]
        if meta is None:
            return
        k, meta = meta


def running_sweeps(run: Run) -> list[Sweep]:
    """The sweeps in progress, innermost first."""
    return [frame[1] for frame in all_frames(run) if frame[0] is swept]
