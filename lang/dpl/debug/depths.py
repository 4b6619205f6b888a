"""How deep calls are, for steps back over calls: a run that is repeated makes other frames, so they are counted."""

from __future__ import annotations

from dpl.debug.history import Moment
from dpl.debug.inspect import environment
from dpl.debug.run import Run


class Depths:
    """The depths of chains of frames.  What is known of a frame is kept with the frame, so that no other takes its
    identity."""

    def __init__(self, run: Run, k: tuple, above: int) -> None:
        """`most` is the depth of `k`, less `above`, which is 0 or 1."""
        self.run = run
        self.known: dict[int, tuple[tuple, int, tuple | None]] = {}  # a frame, its depth, the frame on it at most + 1
        self.most = 1 << 62
        self.most = self.of(k) - above
        if above and id(k) in self.known:
            frame, found, _ = self.known[id(k)]
            self.known[id(k)] = frame, found, frame

    def look(self, k: tuple) -> tuple[int, tuple | None]:
        """The depth of a chain, and its frame that is one deeper than `most`."""
        todo, end = [], self.run.machine.end
        while k is not end and id(k) not in self.known:
            todo.append(k)
            k = k[2]
        _, found, above = self.known[id(k)] if k is not end else (end, 0, None)
        for frame in reversed(todo):
            found += 1
            above = frame if found == self.most + 1 else above
            self.known[id(frame)] = frame, found, above
        return found, above

    def of(self, k: tuple) -> int:
        """The number of frames of a chain and of all that it continues with."""
        found, meta = self.look(k)[0], self.run.machine.meta
        while meta is not None:
            k, meta = meta
            found += self.look(k)[0]
        return found

    def stays_deeper(self, first: Moment, then: Moment) -> bool:
        """Whether the program surely was deeper than `most` from one moment to another: it waited for the same call, or
        for calls in the same loop, which itself has no point at which the program could stop."""
        if first.meta or then.meta or first.item != then.item or first.resumptions != then.resumptions:
            return False
        a, b = self.look(first.k)[1], self.look(then.k)[1]
        if a is None or b is None:
            return False
        return a is b or (a[0] is b[0] and a[2] is b[2] and self.in_loop(a, b, then))

    def in_loop(self, a: tuple, b: tuple, then: Moment) -> bool:
        told = self.run.instruments
        if (waits := told.waits.get(a[0])) is None or environment(a[1]) is not environment(b[1]):
            return False
        function = waits[0].point.function
        return all(met in told.points and told.points[met][0].point.function is not function for met in then.met)
