"""How deep calls are, for steps back over calls: a run that is repeated makes other frames, so they are counted.

Depths are relative to one chain of frames.  Of two deep chains only what they do not share is walked."""

from __future__ import annotations

from itertools import count, takewhile

from dpl.debug.history import Moment, between
from dpl.debug.inspect import Frame, activation, environment
from dpl.debug.points import Function
from dpl.debug.run import Run


class Depths:
    """The depths of chains of frames, less the depth of one of them."""

    def __init__(self, run: Run, k: tuple, outside: bool) -> None:
        """Depths are relative to `k`, or, `outside`, to the chain with which the function that waits was called."""
        self.run, self.end = run, run.machine.end
        self.known: dict[int, dict[int, int]] = {}  # by what the chain continues with, by the identity of the frame
        self.deep: set[int] = set()  # the identities of what chains continue with, where that alone is deeper than 0
        self.flat: set[int] = set()  # and where it is not
        self.kept: list = []  # so that no other frame takes an identity
        start = self.caller(k, run.machine.meta) if outside else (k, run.machine.meta)
        self.rest: tuple | None = (*start, 0)  # of the chain: what has not been walked
        self.meta: tuple | None = start[1]  # of what it continues with: what has not been walked
        self.flat.add(id(self.meta))
        self.lower()

    def caller(self, k: tuple, meta: tuple | None) -> tuple:
        """The chain, and what it continues with, with which the nearest function that waits was called."""
        while not self.owner(k):
            if k is not self.end:
                k = k[2]
            elif meta is not None:
                k, meta = meta
            else:
                return k, meta
        return self.called(k), meta

    def lower(self) -> int:
        """Walk down the chain by a frame, and tell the identity of that frame."""
        assert self.rest is not None
        k, meta, depth = self.rest
        self.kept.append((k, meta))
        self.known.setdefault(id(meta), {})[id(k)] = depth
        if k is not self.end:
            self.rest = k[2], meta, depth - 1
        else:
            self.rest = (*meta, depth) if meta is not None else None
        return id(k)

    def is_deeper(self, k: tuple) -> bool:
        """Whether a chain at the current state is deeper than 0."""
        meta = self.run.machine.meta
        return self.continues_deep(meta) or self.of(k, meta) > 0

    def continues_deep(self, meta: tuple | None) -> bool:
        """Whether all chains that continue with `meta` are deeper than 0.  They are if what it continues with is deep
        itself: so thousands of prompts and calls of continuations, one inside another, need no count."""
        trail: dict[int, tuple] = {}
        here = meta
        while id(here) not in self.deep and id(here) not in self.flat:
            if here is not None:
                trail[id(here)] = here
                here = here[1]
            if self.meta is not None:
                self.meta = self.meta[1]
                self.flat.add(id(self.meta))
                here = self.meta if id(self.meta) in trail else here
        is_deep = id(here) in self.deep
        for over in reversed(before(here, trail)):
            is_deep = is_deep or self.of(*over) > 0
            (self.deep if is_deep else self.flat).add(id(over))
        self.kept.append(meta)
        return is_deep

    def of(self, k: tuple, meta: tuple | None) -> int:
        """The depth of a chain with all that it continues with."""
        known = self.known.get(id(meta)) or self.bottom(meta)
        trail: dict[int, tuple] = {}
        here = id(k)
        while here not in known:
            if k is not self.end:
                trail[here] = k
                k = k[2]
                here = id(k)
            if self.rest is not None and (other := self.lower()) in trail and other in known:
                here = other
        above = list(takewhile(lambda frame: frame != here, trail))
        depth = known[here] + len(above)
        known.update(zip(above, count(depth, -1), strict=False))
        self.kept.append(trail)
        return depth

    def bottom(self, meta: tuple | None) -> dict[int, int]:
        """The depths of chains that continue with something of which nothing is known yet."""
        trail: dict[int, tuple] = {}
        here = meta
        while id(here) not in self.known:
            if here is not None:
                trail[id(here)] = here
                here = here[1]
            other = self.lower_all()
            here = other if id(other) in trail else here
        for over in reversed(before(here, trail)):
            self.kept.append(over)
            self.known[id(over)] = {id(self.end): self.of(*over)}
        return self.known[id(meta)]

    def lower_all(self) -> tuple | None:
        """Walk down until the chain continues with something else, and tell what that is."""
        meta, is_new = None, False
        while self.rest is not None and not is_new:
            meta = self.rest[1]
            is_new = id(meta) not in self.known
            self.lower()
        return meta

    def stays_deeper(self, first: Moment, then: Moment) -> bool:
        """Whether the program surely was deeper wherever it could stop from one moment to the next.

        A chain is at least as deep as what it continues with: all was deeper if what it continued with at the lowest
        is.  Otherwise the frames that the moments share above that have stayed there, unless the chain was exchanged
        for another."""
        if first.item != then.item:
            return False
        floor = then.since.floor
        if self.continues_deep(floor):
            return True
        if then.since.exchanged:
            return False
        shared, one, other = self.shared(chain_above(floor, first), chain_above(floor, then), floor)
        depth, met = self.of(shared, floor), self.met(first, then)
        above = self.owner(one), self.owner(other)
        if above[0] is not None and above[0] is above[1] and above[0] not in met:
            return depth >= 0  # one call has gone on, and only others, which are deeper, were at points
        if depth <= 0:
            return False
        called = self.called(shared)
        return self.of(called, floor) + (self.owner(shared) not in met) > 0

    def shared(self, one: tuple, other: tuple, meta: tuple | None) -> tuple[tuple, tuple | None, tuple | None]:
        """The chain that two chains share, and the frame above it in each."""
        deeper = self.of(one, meta) - self.of(other, meta)
        above = over = None
        while one is not other:
            if deeper >= 0:
                above, one = one, one[2]
            if deeper <= 0:
                over, other = other, other[2]
            deeper -= (deeper > 0) - (deeper < 0)
        return one, above, over

    def met(self, first: Moment, then: Moment) -> set[Function]:
        """The functions of which points were met."""
        points = self.run.instruments.points
        return {points[step][0].point.function for step in between(first, then) if step in points}

    def owner(self, k: tuple | None) -> Function | None:
        """The function of the user's to which the top frame of a chain belongs."""
        waits = self.run.instruments.waits.get(k[0]) if k else None
        return waits[0].point.function if waits else None

    def called(self, k: tuple) -> tuple:
        """The chain with which the function of the top frame was called."""
        if (waits := self.run.instruments.waits.get(k[0])) is None:
            return k
        return activation(self.run, Frame(waits[0], environment(k[1]), waits[1], k=k[2]), k[2])


def before(meta: tuple | None, trail: dict[int, tuple]) -> list[tuple]:
    """What was walked before `meta`."""
    return [trail[here] for here in takewhile(lambda here: here != id(meta), trail)]


def chain_above(meta: tuple | None, moment: Moment) -> tuple:
    """The chain of a moment that continues with `meta`."""
    k, here = moment.k, moment.meta
    while here is not meta:
        assert here is not None
        k, here = here
    return k
