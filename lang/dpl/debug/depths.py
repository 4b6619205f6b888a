"""How deep calls are, for steps back over calls: a run that is repeated makes other frames, so they are counted."""

from __future__ import annotations

from dpl.debug.history import Moment, between
from dpl.debug.inspect import begins, environment
from dpl.debug.run import Run
from dpl.node import node


@node
class Known:
    """A frame with its depth; of the frames below it that are deeper than `most`, the lowest, and the lowest of another
    call than that one.  It keeps the frame, so that no other takes its identity."""

    frame: tuple
    depth: int
    lowest: tuple | None = None
    called: tuple | None = None


class Depths:
    """The depths of chains of frames."""

    def __init__(self, run: Run, k: tuple, above: int) -> None:
        """`most` is the depth of `k`, less `above`, which is 0 or 1."""
        self.run = run
        self.known: dict[int, Known] = {}
        self.most = 1 << 62
        self.most = self.of(k) - above
        if above and id(k) in self.known:
            self.known[id(k)] = Known(k, self.known[id(k)].depth, k)

    def look(self, k: tuple) -> Known:
        todo, end = [], self.run.machine.end
        while k is not end and id(k) not in self.known:
            todo.append(k)
            k = k[2]
        found = self.known[id(k)] if k is not end else Known(end, 0)
        for frame in reversed(todo):
            depth, lowest, called = found.depth + 1, found.lowest, found.called
            if lowest is None and depth > self.most:
                lowest = frame
            elif lowest is not None and called is None and not self.may_be_of(lowest, frame):
                called = frame
            self.known[id(frame)] = found = Known(frame, depth, lowest, called)
        return found

    def may_be_of(self, lowest: tuple, frame: tuple) -> bool:
        """Whether a frame may be of the call that another frame is of."""
        waits = self.run.instruments.waits
        one, other = waits.get(lowest[0]), waits.get(frame[0])
        if one is None or other is None:
            return True
        is_same = one[0].point.function is other[0].point.function
        return is_same and begins(environment(frame[1]), environment(lowest[1]))

    def of(self, k: tuple) -> int:
        """The number of frames of a chain and of all that it continues with."""
        found, meta = self.look(k).depth, self.run.machine.meta
        while meta is not None:
            k, meta = meta
            found += self.look(k).depth
        return found

    def stays_deeper(self, first: Moment, then: Moment) -> bool:
        """Whether the program surely was deeper than `most` from one moment to another: inside of the same call, or of
        calls in the same loop, whose function has no point on the way at which the program could stop."""
        if first.meta or then.meta or first.item != then.item or first.resumptions != then.resumptions:
            return False
        a, b = self.look(first.k), self.look(then.k)
        if a.called is not None and a.called is b.called:
            return True
        return self.in_loop(a, b, between(first, then))

    def in_loop(self, a: Known, b: Known, met: frozenset) -> bool:
        """Whether two chains belong to one loop, or one call, in which only other functions were met."""
        told = self.run.instruments
        one, other = a.lowest, b.lowest
        if one is None or other is None or one[0] is not other[0] or one[2] is not other[2]:
            return False
        waits = told.waits.get(one[0])
        if waits is None or environment(one[1]) is not environment(other[1]):
            return False
        stops = [told.points[step][0].point.function for step in met if step in told.points]
        return self.run.machine.sweep_step not in met and waits[0].point.function not in stops
