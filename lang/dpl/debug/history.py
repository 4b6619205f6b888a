"""The past of a run: moments that can be returned to.

A moment is a state of the machine with what belongs to it, and states are immutable, so a moment costs nothing to keep.
All moments of the last million steps are kept that are 10 ms of work apart; of what is older, fewer and fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpl.debug.journal import Mark
from dpl.node import node

RECENT = 1_000_000  # steps
SPARSE = 16  # moments for each doubling of the distance beyond that


@node
class Stops:
    """The last times until now at which the debugger could stop; -1 if there is none."""

    last: int = -1
    before: int = -1

    def earlier(self, now: int) -> int:
        """The last one before now."""
        return self.last if self.last < now else self.before


@node
class Moment:
    """The program before step number `time`, in item number `item`."""

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


class History:
    """Moments in order of time.  The first is the start of the run."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []

    def keep(self, moment: Moment) -> None:
        if not self.moments or moment.time > self.moments[-1].time:
            self.moments.append(moment)
            if len(self.moments) % 256 == 0:
                self.thin(moment.time)

    def thin(self, now: int) -> None:
        """Drop moments that are long past: few remain for each doubling of the distance."""
        kept, gap_after = [self.moments[0]], 0
        for moment in self.moments[1:]:
            gap_after = max(0, (now - moment.time - RECENT) // SPARSE)
            if now - moment.time <= RECENT or moment.time - kept[-1].time >= gap_after:
                kept.append(moment)
        self.moments = kept

    def before(self, time: int) -> Moment | None:
        """The last moment kept that is at or before this time."""
        found = [moment for moment in self.moments if moment.time <= time]
        return found[-1] if found else None

    def drop_after(self, time: int) -> None:
        while self.moments and self.moments[-1].time > time:
            self.moments.pop()

    def drop_before(self, reaches: Callable[[Mark], bool]) -> None:
        """Drop the moments whose changes can no longer be undone."""
        self.moments = [moment for moment in self.moments if reaches(moment.mark)]
