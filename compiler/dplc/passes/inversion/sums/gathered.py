"""Sums of gathered terms: the point of a place reads what those points read that add there.

    c = par i < n to add (c = null) {             h = m - 1 zeros, g, m - 1 zeros
      par u < m to add (c) {                      c = par p < n + m - 1 to keep {
        x = index g i; y = index k u                s = for u < m state (s = 0) {
        z = mul x y                         =>        x = index h (p - u + m - 1); y = index k u
        j = add i u                                   z = mul x y
        acc_index c z at j } }                        s + z } }

A place is an index of the nest, the sum of one and a multiple of another, or an index and a constant: one index follows
from the place and the others, which are summed over, in the order of the nest; so are several additions.  Conditions
that say no more than that the place is one of the accumulator, as those of a padded convolution, need not be asked.
What is read at an index that follows from a sum is padded with zeros.  Points that give zero where they read zero, as
masked products with a cotangent do, need not be asked whether they are there; others are.  Points are independent then,
and are computed in lanes: what is read along the last dimension of the places is turned so that it lies side by side.

It is done if some array is read more than once, so that the sums are more work than the copies.  What else the nest
adds to stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.types import elem_of
from dplc.passes.inversion.nests import Loop, Unfit
from dplc.passes.inversion.sites.scattered import Points
from dplc.passes.inversion.sites.solved import MOST, Site
from dplc.passes.inversion.sites.zeros import gives_zero_or_nan
from dplc.passes.inversion.sums.prepared import Copies, Term
from dplc.passes.simplify.fold import folded


def gathered(points: Points, k: int) -> list[Gathered]:
    """What is added to an accumulator, as sums at its places: each for the additions whose places follow from the same
    indices; none if that cannot be done."""
    try:
        sites = [Site(points, one) for one in points.added.get(k, ())]
        alike: dict[object, list[Site]] = {}
        for site in sites:
            shifts = tuple([(index, other, site.factors[index]) for index, other in site.shifts.items()])
            alike.setdefault((tuple(site.solved), shifts), []).append(site)
        return [Gathered(points.affine, group) for group in alike.values()]
    except Unfit:
        return []


class Gathered:
    """All that is added to an accumulator, as sums at its places.  `moved` are the indices that do not follow from the
    place alone; `most` and `least` are the greatest and the least constant at the place of an index."""

    b: Builder  # while the sums are written

    def __init__(self, affine: Affine, sites: list[Site]) -> None:
        self.affine = affine
        self.sites = sites
        first = sites[0]
        if len(sites) > MOST:
            raise Unfit
        self.solved, self.loops = first.solved, first.loops
        self.shifts, self.factors = first.shifts, first.factors
        self.dims, self.type = first.added.dims, first.added.value.ty
        self.most = {index: max(site.constants[index] for site in self.sites) for index in self.solved}
        self.least = {index: min(site.constants[index] for site in self.sites) for index in self.solved}
        self.guarded = any(site.added.guards for site in self.sites)  # places may not be those of the accumulator
        self.moved = [index for index in self.solved
                      if index in self.shifts or self.most[index] or self.least[index]]  # fmt: skip
        for site in self.sites:
            self.check(site)

    def check(self, site: Site) -> None:
        if any(site.loops.get(index) != self.loops[index] for index in (*self.solved, *self.shifts.values())):
            raise Unfit
        if not all(index in self.shifts or site.can_follow(index) for index in self.moved):
            raise Unfit
        for read in site.reads:
            for total in read.at:
                mine = [str(term) for term in total if term in self.moved]
                if mine and total != {mine[0]: 1} and not site.is_place(total, mine[0]):
                    raise Unfit

    def pays(self) -> bool:
        """True if something is summed, and every array is read more than once."""
        if len(self.sites) > 1:
            return True
        (site,) = self.sites
        every_loop = set(site.loops)
        return bool(site.summed) and not any(every_loop <= read.apart() for read in site.reads)

    def is_like(self, other: Gathered) -> bool:
        """True if one nest can have both sums, and computes something of both once."""
        if len(self.sites) + len(other.sites) > 2 or self.moved or other.moved or self.solved != other.solved:
            return False
        if self.guarded or other.guarded:
            return False  # each has the places of its own accumulator
        (one,), (two,) = self.sites, other.sites
        if [loop.index for loop in one.summed] != [loop.index for loop in two.summed]:
            return False
        return not {var.name for var, _ in one.code}.isdisjoint(var.name for var, _ in two.code)

    # ---- the code

    def write(self, b: Builder, others: Sequence[Gathered] = ()) -> list[f.Atom]:
        """Writes the sums at all places, beside others that are like these."""
        ones = [self, *others]
        for one in ones:
            one.b = b
        self.atoms: dict[object, f.Atom] = {}
        space = []
        self.pads = {index: (self.pad(index), self.span(index)) for index in self.moved}
        for index in self.solved:
            place = b.var("place", f.I64)
            self.atoms[index] = place
            space.append((place, self.extent(index)))
        sites = [site for one in ones for site in one.sites]
        there = {index: replace(self.loops[index], count=count)
                 for index, (_, count) in zip(self.solved, space, strict=True) if index not in self.moved}  # fmt: skip
        copies = Copies(b, self.loops | there, self.solved, self.pads)
        terms = [copies.term(site) for site in sites]
        with b.inside() as binds:
            totals: list[f.Atom] = [f.Const(0.0, one.type) for one in ones]
            for some in [terms] if others else [[term] for term in terms]:
                totals = self.sums(some, some[0].site.summed, totals)
        body = block_of(binds, totals)
        arrays = [f.Arr(one.type, len(space)) for one in ones]
        made = b.bind(f.Par(tuple(space), body, (f.Out("keep"),) * len(ones)), arrays, "sums")
        counts = [count for _, count in space]
        return [one.enlarged(sums, counts) for one, sums in zip(ones, made, strict=True)]

    def pad(self, index: str) -> f.Atom:
        """The most that is added to an index at its place: so many zeros are before what is read there."""
        return folded(self.b, "max", self.highest(index), integer(0)) if self.guarded else self.highest(index)

    def highest(self, index: str) -> f.Atom:
        factor = self.factors.get(index, 0)
        if factor <= 0:
            return integer(self.most[index])
        steps = folded(self.b, "mul", integer(factor), self.loops[self.shifts[index]].count)
        return folded(self.b, "add", steps, integer(self.most[index] - factor))

    def span(self, index: str) -> f.Atom:
        """The most less the least that is added to an index: so many zeros are after what is read there."""
        apart, factor = self.most[index] - self.least[index], abs(self.factors.get(index, 0))
        if not factor:
            return integer(apart)
        steps = folded(self.b, "mul", integer(factor), self.loops[self.shifts[index]].count)
        return folded(self.b, "add", steps, integer(apart - factor))

    def extent(self, index: str) -> f.Atom:
        """How many places there are; those that are added to under conditions are within the accumulator."""
        count, length = self.loops[index].count, self.dims[self.solved.index(index)]
        if index in self.moved:
            count = folded(self.b, "max", folded(self.b, "add", count, self.highest(index)), integer(0))
        elif self.affine.is_natural(combined(self.affine.exact(length), self.affine.exact(count), -1)):
            return count
        return folded(self.b, "min", count, length) if self.guarded else count

    def sums(self, terms: list[Term], loops: list[Loop], starts: list[f.Atom]) -> list[f.Atom]:
        """The sums of some terms over these loops, in order."""
        b = self.b
        if not loops:
            done: dict[object, f.Atom] = {}
            return [b.op("acc_add", (start, self.value(term, done)))
                    for start, term in zip(starts, terms, strict=True)]  # fmt: skip
        (loop, *rest), states = loops, [b.var("sum", start.ty) for start in starts]
        index = b.var(loop.index.name, f.I64)
        self.atoms[loop.index.name] = index
        with b.inside() as binds:
            after = self.sums(terms, rest, [*states])
        made = f.For(index, loop.count, tuple(states), tuple(starts), block_of(binds, after))
        return [*b.bind(made, [start.ty for start in starts], "sum")]

    def value(self, term: Term, done: dict[object, f.Atom]) -> f.Atom:
        """What is added; `done` has what was computed for other terms."""
        site, known = term.site, dict[str, f.Atom]()

        def once(var: f.Var, op: f.Op) -> None:
            if op not in done:
                done[op] = self.b.one(op, var.ty, var.name)
            known[var.name] = done[op]

        for read in term.reads:
            at = [self.index(site, total) for total in read.at]
            once(read.var, f.Op("index", (read.array, *at), (("unchecked", True),)))
        for var, op in term.code:
            args = [known.get(a.name, a) if isinstance(a, f.Var) else a for a in op.args]
            once(var, replace(op, args=tuple(args)))
        value = site.added.value
        return self.there(term, known.get(value.name, value) if isinstance(value, f.Var) else value)

    def there(self, term: Term, value: f.Atom) -> f.Atom:
        """What is added; zero where no point is that adds, if that does not follow from zeros that are read there.  If
        it is zero or NaN where they are read, only NaN is asked about (`simplify/nan_guards.py`)."""
        b = self.b
        for index in sorted(self.moved):
            if term.site.can_follow(index):
                continue
            at = folded(b, "sub", self.index(term.site, {index: 1}), self.pads[index][0])
            inside = b.op("and", (b.op("ge", (at, integer(0))), b.op("lt", (at, self.loops[index].count))))
            zeros = {read.var.name for read in term.reads if {index: 1} in read.at}
            zero = f.Const(0.0, value.ty)
            if gives_zero_or_nan(term.code, term.site.added.value, zeros):
                outside = b.op("and", (b.op("not", (inside,)), b.op("ne", (value, value))))
                value = b.op("select", (outside, zero, value))
            else:
                value = b.op("select", (inside, value, zero))
        return value

    def index(self, site: Site, total: Sum) -> f.Atom:
        """A sum of indices of the nest, with what stands for these."""
        b = self.b
        for index in self.moved:
            if total == {index: 1}:
                before = folded(b, "sub", self.pads[index][0], integer(site.constants[index]))
                after = folded(b, "add", self.atoms[index], before)
                return self.plus(after, self.shifts[index], -self.factors[index]) if index in self.shifts else after
            if site.is_place(total, index):
                return self.atoms[index]
        made: f.Atom = integer(total.get(ONE, 0))
        for term, factor in sorted(total.items(), key=lambda item: -item[1]):
            if term != ONE:
                made = self.plus(made, term, factor)
        return made

    def plus(self, made: f.Atom, term: object, factor: int) -> f.Atom:
        b = self.b
        value = self.atoms.get(term)
        if isinstance(term, tuple):
            value = b.op("dim", (self.affine.arrays[term[0]],), k=term[1])
        elif value is None:
            value = f.Var(str(term), f.I64)
        if abs(factor) != 1:
            value = b.op("mul", (integer(abs(factor)), value))
        if made == integer(0) and factor > 0:
            return value
        return b.op("add" if factor > 0 else "sub", (made, value))

    def enlarged(self, made: f.Var, counts: list[f.Atom]) -> f.Atom:
        """The sums as an array of the accumulator's lengths, where these are not known to be the same."""
        b, wanted = self.b, self.dims
        differ: f.Atom | None = None
        for count, dim in zip(counts, wanted, strict=True):
            if count == dim or self.affine.sum(count) == self.affine.sum(dim):
                continue
            other = b.op("ne", (count, dim))
            differ = other if differ is None else b.op("or", (differ, other))
        if differ is None:
            return made
        with b.inside() as binds:
            larger = self.larger(made, counts)
        arms = block_of(binds, (larger,)), f.Block((), (made,))
        return b.one(f.If(differ, *arms), made.ty, "sums")

    def larger(self, made: f.Var, counts: list[f.Atom]) -> f.Atom:
        b = self.b
        indices = [b.var("i", f.I64) for _ in counts]
        zero = f.Const(0.0, elem_of(made.ty))
        with b.inside() as binds:
            there: f.Atom = f.Const(True, f.BOOL)
            for index, count in zip(indices, counts, strict=True):
                there = b.op("and", (there, b.op("lt", (index, count))))
            with b.inside() as inner:
                x = b.op("index", (made, *indices), unchecked=True)
            value = b.one(f.If(there, block_of(inner, (x,)), f.Block((), (zero,))), x.ty, "sum")
        space = tuple(zip(indices, self.dims, strict=True))
        return b.one(f.Par(space, block_of(binds, (value,)), (f.Out("keep"),)), made.ty, "sums")
