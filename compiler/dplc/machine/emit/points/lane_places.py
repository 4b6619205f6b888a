"""Indices of lanes that are no numbers side by side: cut off at the ends of an array, or around a ring.

    k = max 0 (min (n - 1) (i + u))      first = k of the first lane      last = k of the last lane
    x = index a k                    =>  x = if last - first = lanes - 1 { lanes of a[first ...] }
                                             else { what a vector of k gathers }

They grow by 0 or 1 from lane to lane, or fall by the length of a ring, so only where first and last lane are that far
apart all of them lie side by side.  Most strips are far from the ends.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import node

from dplc.flat import term as f
from dplc.machine.emit.points.lane_memory import splat
from dplc.machine.llvm.writer import Writer

CUTS = {"min": "smin", "max": "smax"}
SHORTEST_RING = 64  # as long as the longest vectors, so lanes go round at most once


@node
class Place:
    """The indices of the lanes: the first and the last one, and what writes the vector of all."""

    first: str
    last: str
    all: Callable[[], str]


def is_cut(op: f.Op) -> bool:
    """True for an operation that makes such an index of a number of the lanes."""
    match op:
        case f.Op("mod", (_, f.Const(int(n)))):
            return n >= SHORTEST_RING
        case _:
            return op.op in CUTS


class Places:
    """Writes the places of a strip of `width` lanes."""

    def __init__(self, w: Writer, width: int) -> None:
        self.w, self.width = w, width
        self.whole = f"<{width} x i64>"

    def of_number(self, first: str) -> Place:
        """The place of a number of the lanes: this and the next ones."""
        return Place(first, self.w.let(f"add i64 {first}, {self.width - 1}"), lambda: self.numbers(first))

    def numbers(self, first: str) -> str:
        steps = f"<{', '.join(f'i64 {i}' for i in range(self.width))}>"
        return self.w.let(f"add {self.whole} {splat(self.w, self.width, 'i64', first)}, {steps}")

    def cut(self, name: str, place: Place, limit: str) -> Place:
        """The lesser or greater one of a place and a number."""
        w, row = self.w, CUTS[name]

        def every() -> str:
            given = f"{self.whole} {place.all()}, {self.whole} {splat(w, self.width, 'i64', limit)}"
            return w.let(f"call {self.whole} @llvm.{row}.v{self.width}i64({given})")

        first, last = [w.let(f"call i64 @llvm.{row}.i64(i64 {end}, i64 {limit})") for end in (place.first, place.last)]
        return Place(first, last, every)

    def moved(self, name: str, place: Place, shift: str) -> Place:
        """A place plus or minus a number."""
        w = self.w

        def every() -> str:
            return w.let(f"{name} {self.whole} {place.all()}, {splat(w, self.width, 'i64', shift)}")

        first, last = [w.let(f"{name} i64 {end}, {shift}") for end in (place.first, place.last)]
        return Place(first, last, every)

    def around(self, first: str, length: str) -> Place:
        """The places from this one on, on a ring."""
        w = self.w

        def turned(at: str, t: str, length: str, flag: str) -> str:
            over = w.let(f"icmp sge {t} {at}, {length}")
            return w.let(f"select {flag} {over}, {t} {w.let(f'sub {t} {at}, {length}')}, {t} {at}")

        def every() -> str:
            several = splat(w, self.width, "i64", length)
            return turned(self.numbers(first), self.whole, several, f"<{self.width} x i1>")

        last = turned(w.let(f"add i64 {first}, {self.width - 1}"), "i64", length, "i1")
        return Place(first, last, every)

    def side_by_side(self, place: Place) -> str:
        """Whether the lanes lie side by side."""
        apart = self.w.let(f"sub i64 {place.last}, {place.first}")
        return self.w.let(f"icmp eq i64 {apart}, {self.width - 1}")
