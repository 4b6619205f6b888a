"""The past of a run: moments that can be returned to.

A moment is a state of the machine with what belongs to it, and states are immutable, so a moment costs no time to keep.
It costs memory: it holds what the program has let go since.  All moments of the last million steps are kept that are
10 ms of work apart; of what is older, fewer and fewer.  When the moments hold more than MEMORY, those go first that are
far inside of a gradient that is done, for they hold its graph; then every second one of the older half.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from dpl import host
from dpl.debug.journal import Mark
from dpl.node import node, replace

RECENT = 1_000_000  # steps
SPARSE = 16  # moments for each doubling of the distance beyond that
MEMORY = 1 << 30  # bytes
FREED = 4  # moments after now that are freed when one is kept


@node
class Stops:
    """The last times until now at which the debugger could stop; -1 if there is none."""

    last: int = -1
    before: int = -1

    def earlier(self, now: int) -> int:
        """The last one before now."""
        return self.last if self.last < now else self.before


Meta = tuple | None  # what a chain of frames continues with: (a chain, what that continues with)


@node
class Since:
    """What has happened since a moment: `met` are the steps at which the debugger could stop.  `floor` is what the
    chain continued with at the lowest; above it the chain was `exchanged` if a continuation was captured or resumed
    there.  What is below `floor` has stayed as it was."""

    met: frozenset[Callable] = frozenset()
    floor: Meta = None
    exchanged: bool = False

    def and_then(self, later: Since) -> Since:
        """What has happened in this time and the one after it."""
        met = self.met | later.met
        if self.floor is later.floor:
            return Since(met, self.floor, self.exchanged or later.exchanged)
        lower = self if continues_with(later.floor, self.floor) else later
        return Since(met, lower.floor, lower.exchanged)


def continues_with(one: Meta, other: Meta) -> bool:
    """Whether `one` continues with `other`; otherwise `other` must with `one`.  Only what lies between is walked."""
    down, reverse = one, other
    while True:
        if down is other or reverse is None:
            return True
        if reverse is one or down is None:
            return False
        down, reverse = down[1], reverse[1]


@node
class Moment:
    """The program before step number `time`, in item number `item`.  `since` is what has happened since the moment
    before it."""

    time: int
    item: int
    step: Callable
    x: Any
    k: tuple
    meta: tuple | None
    level: int
    mark: Mark
    here: tuple[Any, Any]
    stops: Stops
    since: Since


def between(first: Moment, then: Moment) -> frozenset[Callable]:
    """The steps from one moment on, and before the next, at which the debugger could stop."""
    return then.since.met | {first.step}


class History:
    """Moments in order of time.  The first is the start of the run."""

    def __init__(self, graph: Callable[[Moment], int] = lambda _: 0) -> None:
        """`graph` tells the level of the outermost gradient that is being computed at a moment, or 0."""
        self.moments: list[Moment] = []
        self.gone: list[Moment] = []  # after now: what they hold is freed little by little, for that takes long
        self.graph = graph
        self.base = host.current.resident()
        self.most = self.base + MEMORY
        self.blocks = sys.getallocatedblocks()

    def keep(self, moment: Moment) -> bool:
        """Keep a moment, if it is a new one."""
        if self.moments and moment.time <= self.moments[-1].time:
            return False
        self.moments.append(moment)
        del self.gone[-FREED:]
        if len(self.moments) % 256 == 0:
            self.thin(moment.time)
        if host.current.resident() > self.most:
            self.gone.clear()
            self.lighten()
        return True

    def thin(self, now: int) -> None:
        """Drop moments that are long past: few remain for each doubling of the distance."""
        last = self.moments[0].time

        def goes(moment: Moment) -> bool:
            nonlocal last
            if now - moment.time <= RECENT or moment.time - last >= (now - moment.time - RECENT) // SPARSE:
                last = moment.time
                return False
            return True

        self.drop(goes)

    def lighten(self) -> None:
        """Drop moments until a quarter of the memory is free again, or only two are left."""
        aim = self.most - MEMORY // 4
        size = (host.current.resident() - self.base) / max(sys.getallocatedblocks() - self.blocks, 1)

        def used() -> float:
            """Memory goes back to the system late: what is free for new objects counts as free."""
            return min(host.current.resident(), self.base + size * (sys.getallocatedblocks() - self.blocks))

        levels = [self.graph(moment) for moment in self.moments]
        inside = [b.time for a, b, of_a, of_b in zip(self.moments, self.moments[1:], levels, levels[1:], strict=False)
                  if 0 < of_a == of_b != levels[-1]]  # fmt: skip
        while inside and used() > aim:
            some, inside = set(inside[: len(inside) // 8 + 1]), inside[len(inside) // 8 + 1 :]
            self.drop(lambda moment, some=some: moment.time in some)
        while len(self.moments) > 2 and used() > aim:
            older = {moment.time for moment in self.moments[1 : len(self.moments) // 2 + 1 : 2]}
            self.drop(lambda moment, older=older: moment.time in older)
        self.most = max(self.base + MEMORY, host.current.resident() + MEMORY // 8)

    def drop(self, goes: Callable[[Moment], bool]) -> None:
        """Drop moments, but never the first and the last."""
        kept: list[Moment] = []
        since: Since | None = None  # of the moments that were dropped since the last that is kept
        for i, moment in enumerate(self.moments):
            if since is not None:
                moment = replace(moment, since=since.and_then(moment.since))
            since = moment.since if 0 < i < len(self.moments) - 1 and goes(moment) else None
            if since is None:
                kept.append(moment)
        self.moments = kept

    def index(self, time: int) -> int:
        """The number of the last moment kept that is at or before this time; -1 if there is none."""
        return bisect_right(self.moments, time, key=lambda moment: moment.time) - 1

    def before(self, time: int) -> Moment | None:
        """The last moment kept that is at or before this time."""
        found = self.index(time)
        return self.moments[found] if found >= 0 else None

    def drop_after(self, time: int) -> None:
        """Forgets the moments after a time: what comes then will be another past."""
        first = self.index(time) + 1
        self.gone += self.moments[first:]
        del self.moments[first:]

    def drop_before(self, reaches: Callable[[Mark], bool]) -> None:
        """Drop the moments whose changes can no longer be undone."""
        self.moments = [moment for moment in self.moments if reaches(moment.mark)]
