"""Inversion: additions that the points of a nest scatter become sums at each place (scatter to gather).

    par i < n to add (c) {                        par p < n + m - 1 to keep {
      par u < m to add (c) {                        for u < m state (s = 0.0) {
        z = ...; j = add i u             =>           z = ... with p - u for i
        acc_index c z at j } }                        s + z } }

A nest adds at places: sums of its indices, perhaps cut off at a border or on a ring.  Where the point follows from the
place, the places are the points of a new nest: these are independent, each is written once, and lanes are vectors.

    nests.py    what a nest has: loops, conditions; the walk over all nests of a function
    sites/      what is added, at which place, under which conditions, and which index follows from the place
    forms/      the nest in another form: additions at own places, without conditions, or between bounds
    fission/    the nest as several nests (loop distribution), with what is kept or computed again between them
    sums/       the nests of sums: gathered terms, stencils, phases, interchanged loops, pairs

This file tries these ways in order; what gives None, or raises Unfit inside, leaves the nest as it is:

    what points add at their own places is kept, and the rest is inverted alone;
    the loops are brought into the order of the places, and pairs add at one place;
    all that is added is summed at once: terms that are gathered, stencils, interchanged loops, phases;
    or what is added to one array, beside the others; or what is added is kept first, and then summed.

Additions that stay are then loops that add side by side, each at one place, between bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.build import Builder, all_hold, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims
from dplc.flat.known_sizes import KnownSizes
from dplc.flat.walk import every, names, with_body
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.apart import apart
from dplc.passes.inversion.fission.without_additions import without
from dplc.passes.inversion.forms.own_additions import kept_at_own
from dplc.passes.inversion.forms.own_order import in_own_order
from dplc.passes.inversion.forms.restricted import restricted
from dplc.passes.inversion.nests import Unfit, with_nests
from dplc.passes.inversion.sites.equal_lengths import counts_of_lengths
from dplc.passes.inversion.sites.scattered import Points
from dplc.passes.inversion.sums.alike import together
from dplc.passes.inversion.sums.gathered import gathered
from dplc.passes.inversion.sums.pairs import summed_pairs
from dplc.passes.simplify.dead_code import drop_unused

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
        from dplc.passes.inversion.fission.kept_numbers import parted  # few programs need it

        parts = parted(bind, par, self.lengths, self.supply)
        made = None if parts is None else self.sums(parts.adds, expect_type(f.Par, parts.adds.rhs))
        if parts is None or made is None:
            return self.own(bind, par) or self.kept(bind, par)
        return [parts.keeps, *made]

    def one_of_several(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """The sums in place of what is added to one array, beside what else the nest does."""
        from dplc.passes.inversion.fission.alone import alone

        for k in (k for k, out in enumerate(par.outs) if out.kind == "add"):
            one = alone(bind, par, k, self.supply)
            made = None if one is None else self.sums(one, expect_type(f.Par, one.rhs))
            if made is not None:
                rest = without(bind, {k})
                return [*(self.inverted(rest, expect_type(f.Par, rest.rhs)) or [rest]), *made]
        return None

    def kept(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """A stencil whose additions under conditions, or of what is much to compute, are kept first."""
        from dplc.passes.inversion.fission.kept_additions import kept_first

        parts = kept_first(bind, par, self.affine, self.supply)
        if parts is None:
            return None
        adds = expect_type(f.Par, parts.adds.rhs)
        done, made = self.stencil(parts.adds, adds)
        whole = made if len(done) == len(adds.outs) else self.phases(parts.adds, adds)
        return None if whole is None else [parts.keeps, *whole]

    def own(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        """The same where points add under conditions: zero is kept where they add nothing."""
        from dplc.passes.inversion.forms.conditional import unconditional

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
        from dplc.passes.inversion.sums.polyphase import in_phases

        phases = in_phases(bind, par, self.affine, self.supply)
        made = None if phases is None else self.whole(phases.adds, expect_type(f.Par, phases.adds.rhs))
        return None if phases is None or made is None else phases.around(made, bind, self.supply)

    def stencil(self, bind: f.Bind, par: f.Par) -> Done:
        from dplc.passes.inversion.sums.stencils import stencil

        done, made, much = stencil(bind, par, self.affine, self.supply, self.shared)
        kept = self.kept(bind, par) if much and len(done) == len(par.outs) else None
        return done, kept or made

    def interchange(self, bind: f.Bind, par: f.Par) -> Done:
        from dplc.passes.inversion.sums.interchange import interchanged

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
