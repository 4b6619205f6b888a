"""Sums of numbers or vectors that a loop computes one after the other, in the order of `dpl/prims/sums.py`.

Few are added in registers, and so are as many as there are lanes if their number is known.  Others are added to 32
lanes in memory; a helper adds up the lanes of a block, and blocks in pairs: there is a sum in `levels` for each power
of two in the number of blocks so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from dpl.prims.sums import BLOCK, FEW, LANES

from dplc.flat import term as f
from dplc.machine.emit.bodies import interrupts
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.emitter import Emitter
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.writer import Values, Writer

LEVELS = 54  # more powers of two than a number of blocks has


class SumLoop:
    """The sums of what `term` writes at all points of an index space; `types` are those of its results.  It may be
    written several times if it is `short`."""

    def __init__(
        self, e: BodyEmitter, space: Sequence[f.Var], counts: Sequence[str], types: Sequence[str],
        term: Callable[[], Values], short: bool = False,
    ) -> None:  # fmt: skip
        self.e, self.w, self.space, self.counts, self.types, self.term = e, e.w, space, counts, types, term
        self.short = short

    def totals(self, outer: bool) -> Values:
        """Writes the loop.  If how many are added is not known, there are two loops.  An `outer` loop, which has
        others in it, is written once."""
        if all(n.isdigit() for n in self.counts):
            known = prod(map(int, self.counts))
            if known >= FEW and self.short and len(self.counts) == 1 and known <= LANES:
                return self.by_halves(0, 1, known)
            return self.few() if known < FEW else self.many()
        if outer:
            return self.many()
        total = self.w.product(self.counts)
        return self.w.choose(self.w.let(f"icmp ult i64 {total}, {FEW}"), self.types, self.few, self.many)

    def loops(self, step: Callable[[Values], Values], types: Sequence[str], inits: Values, inside: int = 0) -> Values:
        """The points in order, with a state."""

        def point(i: str, state: Values) -> Values:
            self.e.define((self.space[inside],), [i])
            if inside + 1 == len(self.counts):
                return step(state)
            return self.loops(step, types, state, inside + 1)

        return self.w.count_to(self.counts[inside], point, types, inits)

    def few(self) -> Values:
        """The sums in order."""

        def step(state: Values) -> Values:
            return [plus(self.w, t, a, b) for t, a, b in zip(self.types, state, self.term(), strict=True)]

        return self.loops(step, self.types, [zero(t) for t in self.types])

    def by_halves(self, lane: int, width: int, count: int) -> Values:
        """The sums of every `width`-th of `count` numbers, from number `lane` on: one for each lane, added in pairs."""
        if lane + width >= count:
            self.e.define((self.space[0],), [str(lane)])
            made = self.term()
        else:
            lower, upper = self.by_halves(lane, 2 * width, count), self.by_halves(lane + width, 2 * width, count)
            made = [plus(self.w, t, a, b) for t, a, b in zip(self.types, lower, upper, strict=True)]
        return made if width > 1 else [plus(self.w, t, a, zero(t)) for t, a in zip(self.types, made, strict=True)]

    def many(self) -> Values:
        """The sums by lanes and blocks.  The state is how many numbers the block has, and how many blocks there are."""
        w = self.w
        lanes = [w.slot(f"[{LANES} x {t}]", 64) for t in self.types]
        levels = [w.slot(f"[{LEVELS} x {t}]", 64) for t in self.types]
        for t, at in zip(self.types, lanes, strict=True):
            w.do(f"store [{LANES} x {t}] zeroinitializer, ptr {at}, align 64")

        def step(state: Values) -> Values:
            place, blocks = state
            lane = w.let(f"and i64 {place}, {LANES - 1}")
            for t, numbers, value in zip(self.types, lanes, self.term(), strict=True):
                at = w.let(f"getelementptr inbounds {t}, ptr {numbers}, i64 {lane}")
                w.store(t, plus(w, t, w.load(t, at), value), at)
            place = w.let(f"add nuw nsw i64 {place}, 1")

            def end() -> Values:
                interrupts.poll(self.e)
                for t, numbers, sums in zip(self.types, lanes, levels, strict=True):
                    self.helper("block", t, block_ends, numbers, sums, blocks, place)
                return ["0", w.let(f"add nuw nsw i64 {blocks}, 1")]

            return w.choose(w.let(f"icmp eq i64 {place}, {BLOCK}"), ("i64", "i64"), end, lambda: [place, blocks])

        place, blocks = self.loops(step, ("i64", "i64"), ["0", "0"])
        for t, numbers, sums in zip(self.types, lanes, levels, strict=True):
            self.helper("all", t, all_ends, numbers, sums, blocks, place)
        return [w.load(t, at) for t, at in zip(self.types, lanes, strict=True)]

    def helper(self, name: str, t: str, end: Callable[[Writer, str], None], *args: str) -> None:
        def body(inner: Emitter, _: Values) -> Values:
            end(inner.w, t)
            return []

        self.e.outlined(f"sum of {name} {t}", ("ptr", "ptr", "i64", "i64"), list(args), (), body)


def zero(t: str) -> str:
    return "zeroinitializer" if t[0] == "<" else number(0.0, "f64")


def plus(w: Writer, t: str, a: str, b: str) -> str:
    return w.let(f"fadd {t} {a}, {b}")


def sum_of_lanes(w: Writer, t: str) -> str:
    """The sum of a block, of which the lanes at %p0 have %p3 numbers."""

    def lane(i: str) -> str:
        return w.let(f"getelementptr inbounds {t}, ptr %p0, i64 {i}")

    def in_order() -> Values:
        return w.count_to("%p3", lambda i, s: [plus(w, t, s[0], w.load(t, lane(i)))], (t,), [zero(t)])

    def by_halves() -> Values:
        half = LANES // 2
        while half:
            here = str(half)

            def step(i: str, here: str = here) -> None:
                upper = w.load(t, lane(w.add(i, here)))
                w.store(t, plus(w, t, w.load(t, lane(i)), upper), lane(i))

            w.repeat(here, step)
            half //= 2
        return [w.load(t, "%p0")]

    (total,) = w.choose(w.let(f"icmp ult i64 %p3, {FEW}"), (t,), in_order, by_halves)
    return total


def block_ends(w: Writer, t: str) -> None:
    """Adds up the block number %p2, and pairs of sums in the levels at %p1; zeros for the next block."""
    total = sum_of_lanes(w, t)

    def has(state: Values) -> str:
        bit = w.let(f"lshr i64 %p2, {state[0]}")
        return w.let(f"trunc i64 {bit} to i1")

    def pair(state: Values) -> Values:
        level, right = state
        left = w.load(t, w.let(f"getelementptr inbounds {t}, ptr %p1, i64 {level}"))
        return [w.let(f"add nuw nsw i64 {level}, 1"), plus(w, t, left, right)]

    level, total = w.loop(("i64", t), ["0", total], has, pair)
    w.store(t, total, w.let(f"getelementptr inbounds {t}, ptr %p1, i64 {level}"))
    w.do(f"store [{LANES} x {t}] zeroinitializer, ptr %p0, align 64")


def all_ends(w: Writer, t: str) -> None:
    """Adds up the last block, and the levels of the %p2 blocks before it; the total is the first lane."""
    total = sum_of_lanes(w, t)
    some = w.let("icmp ne i64 %p3, 0")

    def more(state: Values) -> str:
        return w.let(f"icmp ne i64 {w.let(f'lshr i64 %p2, {state[0]}')}, 0")

    def join(state: Values) -> Values:
        level, there, right = state
        bit = w.let(f"trunc i64 {w.let(f'lshr i64 %p2, {level}')} to i1")

        def both() -> Values:
            left = w.load(t, w.let(f"getelementptr inbounds {t}, ptr %p1, i64 {level}"))
            return w.choose(there, (t,), lambda: [plus(w, t, left, right)], lambda: [left])

        (after,) = w.choose(bit, (t,), both, lambda: [right])
        return [w.let(f"add nuw nsw i64 {level}, 1"), w.let(f"or i1 {there}, {bit}"), after]

    *_, total = w.loop(("i64", "i1", t), ["0", some, total], more, join)
    w.store(t, total, "%p0")
