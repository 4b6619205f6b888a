"""The index of a nest that follows from a place: an addition that can be done there, and what it reads.

A place is an index of the nest, the sum of one and a multiple of another, or an index and a constant.  The others are
summed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.affine import ONE, Sum, combined
from dplc.flat.ops.table import OPS
from dplc.flat.walk import names
from dplc.passes.inversion.nests import Unfit
from dplc.passes.inversion.sites.scattered import Added, Points
from dplc.passes.inversion.sites.zeros import gives_zero

MOST = 16  # operations of a point, which is computed again for each of its places
MANY = 1 << 32  # steps


@node
class Read:
    """An element of an array from outside, at indices that are sums."""

    var: f.Var
    array: f.Var
    at: tuple[Sum, ...]

    def mentions(self) -> set[object]:
        return {term for total in self.at for term in total}

    def apart(self) -> set[object]:
        """The indices that alone tell a place of the array."""
        return {term for total in self.at if len(total) == 1 for term in total}


class Site:
    """An addition that can be done at its place.  `solved` has the index of the nest that follows from each place; the
    others are `summed` over.  What is added to an index at its place: another one (`shifts`) times a number, which is
    in `factors`, and a constant.

    Conditions around it must hold wherever the place is one of the accumulator: then they need not be asked.  What is
    read under them must be there for all steps, or, at the place, for all places of the accumulator."""

    def __init__(self, points: Points, added: Added) -> None:
        self.points, self.affine, self.added = points, points.affine, added
        self.loops = {loop.index.name: loop for loop in added.loops}
        self.reads: list[Read] = []
        self.code: list[tuple[f.Var, f.Op]] = []
        self.seen: set[str] = set()
        self.there = list(map(self.affine.sum, added.places))
        self.collect(added.value)
        self.solved: list[str] = []
        self.shifts: dict[str, str] = {}
        self.factors: dict[str, int] = {}
        self.constants: dict[str, int] = {}
        for at in self.there:
            self.solve(at)
        self.summed = [loop for loop in added.loops if loop.index.name not in self.solved]
        self.check()

    def collect(self, atom: f.Atom) -> None:
        """Collects what computes a value: reads, and operations on numbers."""
        if not isinstance(atom, f.Var) or atom.name in self.seen:
            return
        self.seen.add(atom.name)
        op = self.points.defined.get(atom.name)
        if not isinstance(atom.ty, f.Num) or atom.name in self.points.opaque:
            raise Unfit
        if op is None:
            return
        assert isinstance(op, f.Op)
        if op.op == "index":
            array, at = self.points.rows[atom.name]
            if array.name in self.points.defined or array.name in self.points.opaque:
                raise Unfit
            if atom.name in self.points.guarded:
                self.check_read(array, at)
            self.reads.append(Read(atom, array, tuple(map(self.affine.sum, at))))
            return
        if not ((OPS[op.op].elementwise and OPS[op.op].cheap and op.op != "cast") or self.is_fixed(op)):
            raise Unfit
        for arg in op.args:
            self.collect(arg)
        self.code.append((atom, op))

    def check_read(self, array: f.Var, at: tuple[f.Atom, ...]) -> None:
        """What is read under conditions must be there without them."""
        for k, index in enumerate(at):
            if self.affine.sum(index) in self.there:
                with self.at_places():
                    fits = self.affine.fits(index, array, k)
            else:
                fits = self.affine.fits(index, array, k)
            if not fits:
                raise Unfit

    @contextmanager
    def at_places(self) -> Iterator[None]:
        """What is known of places: they lie within the accumulator."""
        facts = self.affine.facts
        before = len(facts)
        for at, length in zip(self.there, self.added.dims, strict=True):
            facts += [at, combined(combined(self.affine.sum(length), {ONE: 1}, -1), at, -1)]
        yield
        del facts[before:]

    def is_fixed(self, op: f.Op) -> bool:
        """True for an operation on numbers from outside of the nest: it is done once, wherever it stands."""
        inside = self.points.defined.keys() | self.points.opaque | self.loops.keys()
        return OPS[op.op].elementwise and inside.isdisjoint(names(op.args))

    def solve(self, at: Sum) -> None:
        """Finds the index of the nest that follows from a place."""
        terms = [str(term) for term in at if term in self.loops]
        constant = at.get(ONE, 0)
        if len(terms) + (ONE in at) < len(at) or len(terms) not in (1, 2):
            raise Unfit
        moved = len(terms) == 2 or constant != 0
        one, *others = sorted(terms, key=lambda term: (at[term] != 1, not self.can_follow(term), -self.steps(term)))
        if one in self.solved or at[one] != 1 or (moved and not others and not self.can_follow(one)):
            raise Unfit
        if not self.added.guards and constant < 0 and all(at[other] > 0 for other in others):
            raise Unfit
        self.solved.append(one)
        self.constants[one] = constant
        if others:
            self.shifts[one], self.factors[one] = others[0], at[others[0]]
            if at[others[0]] != 1 and not self.overlap(one):
                raise Unfit

    def overlap(self, index: str) -> bool:
        """True if places are not so far apart that the sums had more steps where nothing is added than others."""
        steps = self.steps(self.shifts[index])
        return steps < MANY and abs(self.factors[index]) * (steps - 1) <= self.steps(index)

    def steps(self, index: str) -> int:
        """How many steps an index has; very many if that is not known."""
        count = self.loops[index].count
        return count.value if isinstance(count, f.Const) and isinstance(count.value, int) else MANY

    def can_follow(self, index: str) -> bool:
        """True if the points give zero where what is read at this index is zero."""
        padded = {read.var.name for read in self.reads if {index: 1} in read.at}
        return bool(padded) and gives_zero(self.code, self.added.value, padded)

    def check(self) -> None:
        if len(self.code) > MOST or any(shift in self.solved for shift in self.shifts.values()):
            raise Unfit
        used = {a.name for _, op in self.code for a in op.args if isinstance(a, f.Var)}
        if used & self.loops.keys():
            raise Unfit
        outside = self.points.defined.keys() | self.points.opaque
        if any(isinstance(term, str) and term in outside for read in self.reads for term in read.mentions()):
            raise Unfit
        with self.at_places():
            if not all(self.points.conditions.holds(*guard) for guard in self.added.guards):
                raise Unfit

    def is_place(self, total: Sum, index: str) -> bool:
        """True if an index of a read is the place itself."""
        place: Sum = {index: 1}
        if index in self.shifts:
            place[self.shifts[index]] = self.factors[index]
        return total == (place | {ONE: self.constants[index]} if self.constants[index] else place)
