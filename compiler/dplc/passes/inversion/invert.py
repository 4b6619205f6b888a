"""Inversion: additions that the points of a nest scatter become a sum at each place.

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

from collections.abc import Callable, Iterator, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined
from dplc.flat.build import Builder, all_hold, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims
from dplc.flat.known_sizes import KnownSizes
from dplc.flat.types import elem_of
from dplc.flat.walk import every, names, with_body
from dplc.narrow import expect_type
from dplc.passes.inversion.apart import apart
from dplc.passes.inversion.equal_lengths import counts_of_lengths
from dplc.passes.inversion.nests import with_nests
from dplc.passes.inversion.own_additions import kept_at_own
from dplc.passes.inversion.own_order import in_own_order
from dplc.passes.inversion.pairs import summed_pairs
from dplc.passes.inversion.prepared import Copies, Term
from dplc.passes.inversion.restricted import restricted
from dplc.passes.inversion.scattered import MOST, Loop, Points, Site, Unfit, together
from dplc.passes.inversion.without_additions import without
from dplc.passes.inversion.zeros import gives_zero_or_nan
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.fold import folded

Done = tuple[set[int], list[f.Bind]]  # the accumulators that are done in another way, by their numbers, and this way


def inverted(fn: f.Fn, sizes: Callable[[], KnownSizes], supply: f.Supply) -> f.Fn:
    """The function, with its scattered additions inverted where this can be done and pays.  `sizes` are the lengths
    that the program tells."""
    if not any(isinstance(bind.rhs, f.Par) and adds(bind.rhs) for bind in every(fn.body)):
        return fn
    work = _Inverter(fn, sizes().dims(fn), supply)
    body = with_nests(fn.body, work.affine, work.inverted)
    return with_body(fn, with_nests(body, work.affine, work.in_vectors))


def adds(par: f.Par) -> bool:
    """True if points add to places, perhaps beside other results."""
    return not par.ordered and any(out.kind == "add" for out in par.outs)


def of_enclosing(body: f.Block) -> Iterator[str]:
    """What inner Pars of a point add to: accumulators of Pars around them, to which nothing else may happen."""
    for bind in every(body):
        if isinstance(bind.rhs, f.Par):
            yield from names([out.target for out in bind.rhs.outs if out.target is not None])


def scatters(par: f.Par) -> bool:
    """True if points add to places that are not their own."""
    return not par.ordered and bool(par.outs) and all(out.kind == "add" for out in par.outs)


class _Inverter:
    def __init__(self, fn: f.Fn, dims: Dims, supply: f.Supply) -> None:
        self.supply = supply
        self.affine = Affine(dims)
        self.lengths = {bind.vars[0].name for bind in every(fn.body)
                        if isinstance(bind.rhs, f.Op) and bind.rhs.op == "dim"}  # fmt: skip
        self.shared = {name for bind in every(fn.body) if isinstance(bind.rhs, f.Par)
                       for name in of_enclosing(bind.rhs.body)}  # fmt: skip

    def inverted(self, bind: f.Bind, par: f.Par | f.For) -> list[f.Bind] | None:
        """The bindings in place of a Par."""
        if isinstance(par, f.For) or not adds(par):
            return None
        return self.at_own(bind, par) or self.where_equal(bind, par) or self.sums(bind, par)

    def at_own(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """What points add at their own places is kept, and the rest is inverted alone."""
        made = kept_at_own(bind, par, self.affine, self.supply, self.shared)
        if made is None:
            return None
        *before, bind = made
        par = expect_type(f.Par, bind.rhs)
        rest = self.inverted(bind, par) if adds(par) else None
        return [*before, *(rest or [bind])]

    def in_vectors(self, bind: f.Bind, par: f.Par | f.For) -> list[f.Bind] | None:
        """The bindings in place of an innermost Par whose additions stay, as loops that add side by side."""
        if isinstance(par, f.For) or not adds(par):
            return None
        return apart(bind, par, self.affine, self.supply) or restricted(bind, par, self.affine, self.supply)

    def where_equal(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """A Par that is inverted where lengths of its accumulators are the counts of its loops, as the program asks."""
        counts = counts_of_lengths(par, self.affine)
        if not counts:
            return None
        b = Builder(self.supply)
        same = {name: b.op("add", (count, integer(more))) if more else count for name, (count, more) in counts.items()}
        for bound in block_of(b.binds, ()).binds:
            self.affine.define(bound)
        (one,) = Copier(self.supply, same).binds((bind,))
        made = self.sums(one, expect_type(f.Par, one.rhs))
        if made is None:
            return None
        there = all_hold(b, [b.op("eq", (f.Var(name, f.I64), count)) for name, count in same.items()])
        as_it_is = Copier(self.supply, {}).binds((bind,))
        arms = f.Block(tuple(made), one.vars), f.Block(as_it_is, as_it_is[0].vars)
        return [*block_of(b.binds, ()).binds, f.Bind(bind.vars, f.If(there, *arms))]

    def sums(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """The sums in place of a Par, which is parted if it cannot be inverted as it is."""
        if (turned := in_own_order(bind, par)) is not None:
            return self.inverted(turned, expect_type(f.Par, turned.rhs)) or [turned]
        if (pairs := summed_pairs(bind, par, self.affine, self.supply)) is not None:
            return self.inverted(pairs, expect_type(f.Par, pairs.rhs)) or [pairs]
        if scatters(par) and (made := self.whole(bind, par)) is not None:
            return made
        if len(par.outs) > 1 and (made := self.one_of_several(bind, par)) is not None:
            return made
        from dplc.passes.inversion.fission import parted  # few programs need it

        parts = parted(bind, par, self.lengths, self.supply)
        made = None if parts is None else self.sums(parts.adds, expect_type(f.Par, parts.adds.rhs))
        if parts is None or made is None:
            return self.own(bind, par) or self.kept(bind, par)
        return [parts.keeps, *made]

    def one_of_several(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """The sums in place of what is added to one array, beside what else the nest does."""
        from dplc.passes.inversion.alone import alone

        for k in (k for k, out in enumerate(par.outs) if out.kind == "add"):
            one = alone(bind, par, k, self.supply)
            made = None if one is None else self.sums(one, expect_type(f.Par, one.rhs))
            if made is not None:
                rest = without(bind, {k})
                return [*(self.inverted(rest, expect_type(f.Par, rest.rhs)) or [rest]), *made]
        return None

    def kept(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """A stencil whose additions under conditions, or of what is much to compute, are kept first."""
        from dplc.passes.inversion.kept_additions import kept_first

        parts = kept_first(bind, par, self.affine, self.supply)
        if parts is None:
            return None
        adds = expect_type(f.Par, parts.adds.rhs)
        done, made = self.stencil(parts.adds, adds)
        whole = made if len(done) == len(adds.outs) else self.phases(parts.adds, adds)
        return None if whole is None else [parts.keeps, *whole]

    def own(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """The same where points add under conditions: zero is kept where they add nothing."""
        from dplc.passes.inversion.conditional import unconditional

        if not any(isinstance(one.rhs, f.If) for one in every(par.body)):
            return None
        try:
            plain = unconditional(par, self.affine, self.supply)
        except Unfit:
            return None
        return self.at_own(replace(bind, rhs=plain), plain)

    def whole(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        for way in (self.nest, self.stencil, self.interchange):
            done, made = way(bind, par)
            if len(done) == len(par.outs):
                return made
            if done:
                less = without(bind, done)
                (rest,) = drop_unused(f.Block((less,), less.vars)).binds
                return [*(self.sums(rest, expect_type(f.Par, rest.rhs)) or [rest]), *made]
        return self.phases(bind, par)

    def phases(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """The sums where places lie apart by a stride."""
        from dplc.passes.inversion.polyphase import in_phases

        phases = in_phases(bind, par, self.affine, self.supply)
        made = None if phases is None else self.whole(phases.adds, expect_type(f.Par, phases.adds.rhs))
        return None if phases is None or made is None else phases.around(made, bind, self.supply)

    def stencil(self, bind: f.Bind, par: f.Par) -> Done:
        from dplc.passes.inversion.stencils import stencil

        return stencil(bind, par, self.affine, self.supply, self.shared)

    def interchange(self, bind: f.Bind, par: f.Par) -> Done:
        from dplc.passes.inversion.interchange import interchanged

        return interchanged(bind, par, self.affine, self.supply, self.shared)

    def nest(self, bind: f.Bind, par: f.Par) -> Done:
        try:
            points = Points(par, self.affine)
        except Unfit:
            return set(), []
        sums = {k: parts for k in range(len(par.outs)) if (parts := gathered(points, k))}
        if not any(one.pays() for parts in sums.values() for one in parts):
            return set(), []
        if all(not site.summed for parts in sums.values() for one in parts for site in one.sites):
            done = self.stencil(bind, par)  # it copies no arrays
            if len(done[0]) == len(par.outs):
                return done
        b = Builder(self.supply)
        written: dict[int, f.Atom] = {}  # by the identity of what is gathered
        for group in together([one for parts in sums.values() for one in parts]):
            written.update(zip(map(id, group), group[0].write(b, group[1:]), strict=True))
        renamed: dict[str, f.Var] = {}
        for k, parts in sums.items():
            var, target = bind.vars[k], par.outs[k].target
            made = [written[id(one)] for one in parts]
            assert target is not None
            total = b.one(f.Op("acc_add", (target, made[0])), var.ty) if isinstance(target, f.Var) else made[0]
            for one in made[1:]:
                total = b.one(f.Op("acc_add", (total, one)), var.ty)
            renamed[expect_type(f.Var, total).name] = var
        binds = block_of(b.binds, ()).binds
        return set(sums), [f.Bind(tuple([renamed.get(v.name, v) for v in one.vars]), one.rhs) for one in binds]


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
        elif self.affine.is_natural(combined(self.affine.sum(length), self.affine.sum(count), -1)):
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
