"""Sums of a known number of floats, of at most one block, in vectors: in the order of `dpl/prims/sums.py`.

                                          acc = vector of 32 zeros
    par i < 100 to fold 0 {               for k < 3 { acc = acc + lanes of x[32 k ...] * lanes of y[32 k ...] }
      x = index a i; y = index b i   =>   p = masked lanes of x[96 ...] * y[96 ...]
      z = mul x y                         halves of acc and p are added until one lane is left
      yield z }

No number goes through memory, as in `sums.py`, where a vector waits for the stores of the numbers that it is to read:
for sums of one short row after the other that is most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.prims.sums import BLOCK, FEW, LANES

from dplc.flat import term as f
from dplc.flat.walk import every
from dplc.machine.emit.arrays import Array
from dplc.machine.emit.body import BodyEmitter
from dplc.machine.emit.lanes import Lanes, num
from dplc.machine.emit.marks import MASKS_FROM
from dplc.machine.emit.varying import Varying, varying_step
from dplc.machine.emit.vectors import places, vector_type
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values

MOST = 64  # bindings of a step, which is written up to five times


def vector_sums(e: BodyEmitter, par: f.Par, count: str) -> VectorSums | None:
    """The writer of a Par of one dimension that adds up floats, if vectors do its steps."""
    if e.is_cold or e.unit.vector_bytes < MASKS_FROM or len(par.space) > 1:
        return None
    if not count.isdigit() or not FEW <= int(count) <= BLOCK:
        return None
    how = varying_step(par) if len(every(par.body)) <= MOST else None
    return VectorSums(e, par, how, count) if how else None


class VectorSums(Lanes):
    """The sums of a Par's points, and what these keep.  The state of the loop is the sums."""

    def __init__(self, e: BodyEmitter, par: f.Par, how: Varying, count: str) -> None:
        super().__init__(e, par, how, [count])
        self.piece = self.width
        self.added = [x for x, out in zip(par.body.results, par.outs, strict=True) if out.kind == "fold"]
        self.TYPES = tuple([SCALARS[num(x.ty)] for x in self.added])
        self.START = tuple([number(0.0, num(x.ty)) for x in self.added])

    def totals(self, state: Values) -> Values:
        return state

    def write(self, number: str, kept: dict[int, Array]) -> Values:
        """Writes the loop; `number` is that of the loop, of which what is `kept` has one for each."""
        start, whole = self.w.mul(number, self.count), int(self.count) // LANES
        slots: list[list[str]] = [[""] * (LANES // self.piece) for _ in self.added]
        if whole:
            slots = [self.split(x, vector) for x, vector in zip(self.added, self.whole_lanes(whole, start, kept),
                                                                strict=True)]  # fmt: skip
        for first in range(whole * LANES, int(self.count), self.piece):
            self.mask = self.first_lanes(int(self.count) - first)
            at = first % LANES // self.piece
            for x, slot, vector in zip(self.added, slots, self.step(str(first), start, kept), strict=True):
                slot[at] = self.plus(x, slot[at], self.masked(x, vector))
        self.mask = ""
        return [self.folded(x, slot) for x, slot in zip(self.added, slots, strict=True)]

    def whole_lanes(self, times: int, start: str, kept: dict[int, Array]) -> Values:
        """The sums of so many vectors of all lanes."""
        self.width = LANES
        types = [vector_type(num(x.ty), LANES) for x in self.added]

        def step(i: str, state: Values) -> Values:
            made = self.step(self.w.mul(i, str(LANES)), start, kept)
            return [self.w.let(f"fadd {t} {a}, {b}") for t, a, b in zip(types, state, made, strict=True)]

        made = self.w.count_to(str(times), step, types, ["zeroinitializer"] * len(types))
        self.width = self.piece
        return made

    def step(self, lane: str, start: str, kept: dict[int, Array]) -> Values:
        """What the points from number `lane` on add, and what they keep is stored."""
        outer, self.e.env = self.e.env, dict(self.e.env)
        self.parts[self.par.space[0][0].name] = [lane]
        self.binds(self.how.binds)
        self.store_points(lane, [start], kept)
        made = [self.in_lanes(x, 0) for x in self.added]
        self.e.env = outer
        return made

    # ---- vectors of a piece of the lanes

    def first_lanes(self, count: int) -> str:
        """The mask of the first lanes; none if all have points."""
        if count >= self.width:
            return ""
        flags = ["i1 true" if i < count else "i1 false" for i in range(self.width)]
        return f"<{', '.join(flags)}>"

    def masked(self, x: f.Atom, vector: str) -> str:
        """A vector with zeros in the lanes without points."""
        t = vector_type(num(x.ty), self.width)
        return self.w.let(f"select {self.chosen()}, {t} {vector}, {t} zeroinitializer") if self.mask else vector

    def plus(self, x: f.Atom, a: str, b: str) -> str:
        """The sum of two vectors, of which either may be absent."""
        return self.w.let(f"fadd {vector_type(num(x.ty), self.piece)} {a}, {b}") if a and b else a or b

    def split(self, x: f.Atom, vector: str) -> list[str]:
        return [self.part(num(x.ty), vector, LANES, range(first, first + self.piece))
                for first in range(0, LANES, self.piece)]  # fmt: skip

    def part(self, ty: str, vector: str, lanes: int, which: Sequence[int]) -> str:
        t = vector_type(ty, lanes)
        return self.w.let(f"shufflevector {t} {vector}, {t} poison, {places(which)}")

    def folded(self, x: f.Atom, slots: list[str]) -> str:
        """The sum of all lanes: the upper half is added to the lower half until one is left.  Absent ones are zeros."""
        w, ty = self.w, num(x.ty)
        while len(slots) > 1:
            half = len(slots) // 2
            slots = [self.plus(x, a, b) for a, b in zip(slots[:half], slots[half:], strict=True)]
        (vector,), width = slots, self.piece
        while width > 1:
            width //= 2
            low, high = (self.part(ty, vector, 2 * width, range(k, k + width)) for k in (0, width))
            vector = w.let(f"fadd {vector_type(ty, width)} {low}, {high}")
        total = w.let(f"extractelement {vector_type(ty, 1)} {vector}, i64 0")
        return w.let(f"fadd {SCALARS[ty]} {total}, {number(0.0, ty)}")
