"""Loops of a known number of points that are arithmetic, in vectors.

                                          acc = vector of 32 zeros
    par i < 110 to fold 0, keep {         for k < 3 { z = lanes of a[32 k ...] * lanes of b[32 k ...]
      x = index a i; y = index b i   =>               acc = acc + z; lanes of out[32 k ...] = z }
      z = mul x y                         the same for 8, for 4, and for 2 points
      yield z, z }                        halves of acc are added until one lane is left

A sum has the order of `dpl/prims/sums.py`; that of few numbers takes them out of their vectors.  That pays where the
numbers are of elementary functions, as in a `softmax` of ten.  It also pays where the points add to an array besides:
reverse mode of a small matrix times a vector adds to rows for the matrix, and to sums for the vector.

No number of a sum goes through memory.  In `sums.py` a vector waits for the stores of the numbers that it reads: for
sums of short rows, one after the other, that is most of the time.  Nor is the rest of a short row done point by point,
as LLVM would.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node
from dpl.prims.sums import BLOCK, FEW, LANES

from dplc.flat import term as f
from dplc.flat.walk import every
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.points.borders import is_ring
from dplc.machine.emit.points.lane_operations import has_functions
from dplc.machine.emit.points.lanes import Lanes, num
from dplc.machine.emit.points.varying import Varying, varying_step
from dplc.machine.emit.scalars.vectors import places, vector_type
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values

MOST = 96  # bindings of a point, which is written several times
FEWER = 24  # bindings, at most, of points whose rest is written in vectors of half the length, a quarter, ...
SHORT = range(4, 4 * LANES)  # points that only keep numbers, or add to arrays
LONG = range(FEW, BLOCK + 1)  # points that are summed by lanes
FEW_POINTS = range(3, FEW)  # points with elementary functions, or that add to arrays too, which are summed in order
QUICK_MASKS = 64  # bytes of a vector; of shorter ones, some processors take ten times as long to store a part


def straight(e: BodyEmitter, par: f.Par, count: str) -> Straight | None:
    """The writer of the points of a Par's last dimension, if vectors do them."""
    if e.is_cold or not e.unit.has_masks or not count.isdigit() or len(every(par.body)) > MOST:
        return None
    sums, functions = any(out.kind == "fold" for out in par.outs), has_functions(par.body.binds)
    few = int(count) in FEW_POINTS and (functions or any(out.kind == "add" for out in par.outs))
    if sums and not (len(par.space) == 1 and (few or int(count) in LONG)):
        return None
    if not sums and (int(count) not in SHORT or functions):
        return None  # LLVM does well with more of them, and with elementary functions
    if not sums and int(count) >= FEW and any(is_ring(bind.rhs) for bind in par.body.binds):
        return None  # there are more points between the borders (`borders.py`)
    how = varying_step(par)
    return Straight(e, par, how, count) if how else None


@node
class Piece:
    """Points that are computed together, at most as many as a vector has lanes."""

    first: int
    lanes: int
    points: int  # fewer than lanes if these are masked


class Straight(Lanes):
    """The points of a Par's last dimension; the state of the loop is its sums."""

    def __init__(self, e: BodyEmitter, par: f.Par, how: Varying, count: str) -> None:
        super().__init__(e, par, how, [count])
        self.vector_lanes = self.width
        self.added = [x for x, out in zip(par.body.results, par.outs, strict=True) if out.kind == "fold"]
        self.TYPES = tuple([SCALARS[num(x.ty)] for x in self.added])
        self.START = tuple([number(0.0, num(x.ty)) for x in self.added])

    def totals(self, state: Values) -> Values:
        return state

    def write(self, row: str, kept: dict[int, Array]) -> Values:
        """Writes the points of a row; `row` is its number.  Gives the sums."""
        if self.added and int(self.count) < FEW:
            return self.write_few(kept)
        start, whole = self.w.mul(row, self.count) if row != "0" else "0", int(self.count) // LANES
        slots: list[list[str]] = [[""] * (LANES // self.vector_lanes) for _ in self.added]
        if whole:
            made = self.whole_lanes(whole, start, kept)
            slots = [self.split(x, vector) for x, vector in zip(self.added, made, strict=True)]
        for piece in self.pieces(whole * LANES):
            self.width = piece.lanes
            self.mask = self.first_lanes(piece.points)
            at = piece.first % LANES // self.vector_lanes
            for x, slot, vector in zip(self.added, slots, self.step(str(piece.first), start, kept), strict=True):
                slot[at] = self.plus(x, slot[at], self.with_zeros(x, vector, piece))
            self.mask = ""
        return [self.folded(x, slot) for x, slot in zip(self.added, slots, strict=True)]

    def write_few(self, kept: dict[int, Array]) -> Values:
        """Writes few points.  Gives the sums, in order."""
        totals = list(self.START)
        for piece in self.pieces(0):
            self.width = piece.lanes
            self.mask = self.first_lanes(piece.points)
            for k, (x, vector) in enumerate(zip(self.added, self.step(str(piece.first), "0", kept), strict=True)):
                for i in range(piece.points):
                    one = self.w.let(f"extractelement {vector_type(num(x.ty), piece.lanes)} {vector}, i64 {i}")
                    totals[k] = self.w.let(f"fadd {self.TYPES[k]} {totals[k]}, {one}")
            self.mask = ""
        return totals

    def pieces(self, first: int) -> list[Piece]:
        """The points from number `first` on: vectors, and then shorter ones, or one that is masked."""
        found, lanes, count = list[Piece](), self.vector_lanes, int(self.count)
        stores = bool(self.added) and count < FEW and self.e.unit.vector_bytes < QUICK_MASKS
        masked = has_functions(self.how.binds) or (len(every(self.par.body)) > FEWER and not stores)
        while first < count:
            while lanes > count - first and not masked:
                lanes //= 2
            found.append(Piece(first, lanes, min(lanes, count - first)))
            first += lanes
        return found

    def whole_lanes(self, times: int, start: str, kept: dict[int, Array]) -> Values:
        """Writes so many times as many points as a sum has lanes; the vectors of sums."""
        self.width = LANES
        types = [vector_type(num(x.ty), LANES) for x in self.added]

        def step(i: str, state: Values) -> Values:
            made = self.step(self.w.mul(i, str(LANES)), start, kept)
            return [self.w.let(f"fadd {t} {a}, {b}") for t, a, b in zip(types, state, made, strict=True)]

        return self.w.count_to(str(times), step, types, ["zeroinitializer"] * len(types))

    def step(self, lane: str, start: str, kept: dict[int, Array]) -> Values:
        """Writes the points from number `lane` on; what they add to sums."""
        outer, self.e.env = self.e.env, dict(self.e.env)
        self.parts[self.par.space[-1][0].name] = [lane]
        self.binds(self.how.binds)
        self.store_points(lane, [start], kept)
        made = [self.in_lanes(x, 0) for x in self.added]
        self.e.env = outer
        return made

    # ---- vectors of a part of the lanes

    def first_lanes(self, count: int) -> str:
        """The mask of the first lanes; none if all have points."""
        flags = ["i1 true" if i < count else "i1 false" for i in range(self.width)]
        return f"<{', '.join(flags)}>" if count < self.width else ""

    def with_zeros(self, x: f.Atom, vector: str, piece: Piece) -> str:
        """A vector of a piece as a whole one, with zeros in the lanes without points."""
        t, lanes, first = vector_type(num(x.ty), piece.lanes), self.vector_lanes, piece.first % self.vector_lanes
        if piece.points == lanes:
            return vector
        which = places(i - first if 0 <= i - first < piece.points else piece.lanes for i in range(lanes))
        return self.w.let(f"shufflevector {t} {vector}, {t} zeroinitializer, {which}")

    def plus(self, x: f.Atom, a: str, b: str) -> str:
        """The sum of two vectors, of which either may be absent."""
        return self.w.let(f"fadd {vector_type(num(x.ty), self.vector_lanes)} {a}, {b}") if a and b else a or b

    def split(self, x: f.Atom, vector: str) -> list[str]:
        """A long vector as several that fit into registers."""
        lanes = self.vector_lanes
        return [self.part(num(x.ty), vector, LANES, range(first, first + lanes)) for first in range(0, LANES, lanes)]

    def part(self, ty: str, vector: str, lanes: int, which: Sequence[int]) -> str:
        """Some lanes of a vector."""
        t = vector_type(ty, lanes)
        return self.w.let(f"shufflevector {t} {vector}, {t} poison, {places(which)}")

    def folded(self, x: f.Atom, slots: list[str]) -> str:
        """The sum of all lanes: the upper half is added to the lower half until one is left.  Absent ones are zeros."""
        w, ty = self.w, num(x.ty)
        while len(slots) > 1:
            half = len(slots) // 2
            slots = [self.plus(x, a, b) for a, b in zip(slots[:half], slots[half:], strict=True)]
        (vector,), width = slots, self.vector_lanes
        while width > 1:
            width //= 2
            low, high = (self.part(ty, vector, 2 * width, range(k, k + width)) for k in (0, width))
            vector = w.let(f"fadd {vector_type(ty, width)} {low}, {high}")
        total = w.let(f"extractelement {vector_type(ty, 1)} {vector}, i64 0")
        return w.let(f"fadd {SCALARS[ty]} {total}, {number(0.0, ty)}")
