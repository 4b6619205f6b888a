"""Inversion of stencils: what points add at places beside their own, perhaps under conditions, is summed at each place.

    c = par i < n to add (c = null) {              c = par p < m to keep {
      x = index d i; g = gt i 0                      i = sub p 1; a = ge i 0; b = lt i n
      if g { z = mul x w                     =>      u = if a && b { x = index d i; g = gt i 0
             acc_index c z m (add i 1) }                             if g { mul x w } else { 0.0 } }
      else { acc_index c x m i } }                        else { 0.0 }
                                                     v = ...
                                                     0.0 + u + v }

A place is each index of the nest plus a constant, so the point follows from the place.  Each place adds in the order of
the nest: what comes from a lesser point comes first.  The points are computed again for each of their places, so they
must be cheap.  What a point adds at one place, in both arms of a branch too, is one number.

What is added where an index has one value, as at the edge of a grid, is left to a nest without this index:

    if eq j 0 { acc_index c x n m i k }    =>    if 0 < m { par i < n to add (c) { x = ...; acc_index c x n m i k } }
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from math import prod

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, combined
from dplc.flat.build import Builder, all_hold, block_of, integer
from dplc.flat.conditions import Conditions
from dplc.flat.copy import Copier
from dplc.flat.nans import OF_GUARD, guards
from dplc.flat.walk import is_in, with_binds
from dplc.passes.inversion.nests import Guard, Unfit
from dplc.passes.inversion.sites.rings import steps_from
from dplc.passes.inversion.sites.stencil_sites import Additions, Border, Edge, Site, is_cheap
from dplc.passes.simplify.fold import folded
from dplc.passes.simplify.purity import droppable

SITES, MOST = 16, 96  # of an accumulator, and operations that its places compute, at most
AGAIN = 10  # operations computed again for each number that might be kept: it is written, and read at its places
PHASES = 8  # numbers that a point keeps side by side
Space = tuple[tuple[f.Var, f.Atom], ...]


def stencil(
    bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply, shared: Collection[str]
) -> tuple[set[int], list[f.Bind], bool]:  # fmt: skip
    """For a nest that only adds: the numbers of the accumulators that are stencils, and their sums; and whether their
    places compute so much again that it is better kept.  Accumulators of a nest around this one are `shared`."""
    try:
        work = _Stencil(par, affine, supply, shared)
        return *work.written(bind, par), work.much
    except Unfit:
        return set(), [], False


class _Stencil(Additions):
    """Writes the sums of what a nest adds."""

    b: Builder  # while they are written
    much = False  # is computed again at the places

    def written(self, bind: f.Bind, par: f.Par) -> tuple[set[int], list[f.Bind]]:
        b = self.b = Builder(self.supply)
        made, beside = set[int](), False
        for k, (var, out) in enumerate(zip(bind.vars, par.outs, strict=True)):
            if k in self.unfit:
                continue
            before = len(b.binds)
            try:
                b.binds.append(f.Bind((var,), self.whole(var, out, k, par)))
            except Unfit:
                del b.binds[before:]
                continue
            made.add(k)
            beside |= bool(self.edges[k]) or any(site.guards or any(site.offsets.values()) for site in self.sites[k])
        return (made, list(block_of(b.binds, ()).binds)) if beside else (set(), [])

    def whole(self, var: f.Var, out: f.Out, k: int, par: f.Par) -> f.Rhs:
        """Accumulator number `k` with all that is added to it."""
        b, sites, target = self.b, self.sites[k], None
        if isinstance(out.target, f.Var) and sites:
            if not self.is_whole(sites[0]):
                raise Unfit
            if is_in(out.target, self.shared):
                if not self.edges[k] and len(sites) == 1:
                    raise Unfit  # each place is added to once at most: there is nothing to sum
            else:
                target = b.one(f.Op("acc_zeros", (out.target, *sites[0].dims)), var.ty, var.name)
        sums = self.sums(sites, target)
        made = self.added(sums, sites[0], out.target) if isinstance(out.target, f.Var) and target is None else sums
        for edge in self.edges[k]:
            before = b.one(made, var.ty, var.name)
            made = self.edged(before, edge, par) if isinstance(edge, Edge) else self.cut_off(before, edge, par)
        return made

    def added(self, sums: f.Par, site: Site, target: f.Var) -> f.Rhs:
        """Sums that are added to an accumulator; each as it is computed, if a point has one."""
        b, (out,), (total,) = self.b, sums.outs, sums.body.results
        if out.inner:
            return f.Op("acc_add", (target, b.one(sums, target.ty, target.name)))
        acc, after = b.var(target.name, target.ty), b.var(target.name, target.ty)
        places = [place for place, _ in sums.space]
        one = f.Op("acc_index", (acc, total, *site.dims, *places), (("rank", len(places)),))
        body = with_binds(sums.body, (*sums.body.binds, f.Bind((after,), one)), (after,))
        return replace(sums, body=body, outs=(f.Out("add", target=target, acc=acc),))

    # ---- the edges

    def edged(self, acc: f.Var, edge: Edge, par: f.Par) -> f.Rhs:
        """Adds at an edge, if the nest has such points."""
        b, site = self.b, edge.site
        copier = Copier(self.supply, {})
        loops = {loop.index: loop.count for loop in site.loops}
        self.again(copier, (edge.number,))
        at = copier.atom(edge.number)
        if edge.constant:
            at = b.op("add", (at, integer(edge.constant)))
        copier.atoms[edge.index.name] = at
        low, high = b.op("ge", (at, integer(0))), b.op("lt", (at, loops.pop(edge.index)))
        space = tuple([(copier.var(index), count) for index, count in loops.items()])
        with b.inside() as binds:
            if space:
                after: f.Atom = b.one(self.points(acc, site, space, copier, par), acc.ty, acc.name)
            else:
                after = self.under(copier, site.guards, site, acc)
        there = b.op("and", (low, high))
        return f.If(there, block_of(binds, (after,)), f.Block((), (acc,)))

    def cut_off(self, acc: f.Var, border: Border, par: f.Par) -> f.Par:
        """Adds where a place is cut off."""
        b, copier = self.b, Copier(self.supply, {})
        count = next(loop.count for loop in border.site.loops if loop.index == border.index)
        first: f.Atom = integer(0)
        if border.end == "max":
            steps = folded(b, "min", integer(-border.beyond), count)
        else:
            first = folded(b, "max", folded(b, "sub", border.length, integer(border.beyond)), integer(0))
            steps = folded(b, "sub", count, first)
        steps, step = folded(b, "max", steps, integer(0)), b.var(border.index.name, f.I64)
        space = tuple([(step, steps) if loop.index == border.index else (copier.var(loop.index), loop.count)
                       for loop in border.site.loops])  # fmt: skip
        return self.points(acc, border.site, space, copier, par, (border.index, first, step))

    def points(
        self, acc: f.Var, site: Site, space: Space, copier: Copier, par: f.Par,
        at: tuple[f.Var, f.Atom, f.Var] | None = None,
    ) -> f.Par:  # fmt: skip
        """A nest that adds at an edge; `at` is an index, which is the sum of two numbers."""
        b, inner = self.b, self.b.var(acc.name, acc.ty)
        with b.inside() as points:
            if at is not None:
                copier.atoms[at[0].name] = folded(b, "add", at[2], at[1])
            total = self.under(copier, site.guards, site, inner)
        return f.Par(space, block_of(points, (total,)), (f.Out("add", target=acc, acc=inner),), par.span)

    def under(self, copier: Copier, guards: tuple[Guard, ...], site: Site, acc: f.Var) -> f.Atom:
        """The accumulator after an addition under these conditions, each of which is computed under those before it."""
        b = self.b
        if not guards:
            self.again(copier, (site.value, *site.places))
            args = (acc, copier.atom(site.value), *site.dims, *map(copier.atom, site.places))
            return b.op("acc_index", args, rank=len(site.dims))
        ((cond, truth), *rest) = guards
        self.again(copier, (cond,))
        with b.inside() as binds:
            after = self.under(copier, tuple(rest), site, acc)
        arms = block_of(binds, (after,)), f.Block((), (acc,))
        return b.one(f.If(copier.atom(cond), *(arms if truth else arms[::-1])), acc.ty, acc.name)

    def again(self, copier: Copier, atoms: tuple[f.Atom, ...]) -> None:
        """Writes what computes some values, as it is."""
        binds = self.needed([bind for bind in self.code if bind.vars[0].name not in copier.atoms], atoms)
        if not all(droppable(bind.rhs) for bind in binds):
            raise Unfit
        self.b.binds += copier.binds(tuple(binds))

    def is_whole(self, site: Site) -> bool:
        """True if there are as many places as points, up to a constant: then asking all places costs no more."""
        counts = site.counts
        return all(set(combined(self.affine.sum(length), self.affine.sum(counts[index]), -1)) <= {ONE}
                   for index, length in zip(site.solved, site.dims, strict=True))  # fmt: skip

    def sums(self, sites: list[Site], target: f.Var | None) -> f.Par:
        """The sums of what is added to one accumulator, at each of its places; it begins as `target`, or as zeros."""
        first = sites[0] if sites else None
        if first is None or len(sites) > SITES or any(site.loops != first.loops for site in sites):
            raise Unfit
        size, most = sum(map(self.size, sites)), AGAIN * len({site.value for site in sites})
        if size > MOST:
            raise Unfit
        if size > most and not of_phases(first):  # each place of a phase is that of one point
            self.much = self.much or self.again_at(sites) > most
        order = [loop.index.name for loop in first.loops]
        sites = sorted(sites, key=lambda site: [-site.offsets[index] for index in order])
        b, space = self.b, tuple([(self.b.var("place", f.I64), length) for length in first.dims])
        for place, length in space:
            self.affine.loop(place, length)
        if (phases := self.phases(first)) and len(phases) < len(space):
            return self.rows(sites, space, phases, target)
        places = [place for place, _ in space]
        with b.inside() as binds:
            total: f.Atom = f.Const(0.0, first.value.ty)
            if target is not None:
                total = b.op("index", (target, *places), unchecked=True)
            total = self.total(total, sites, places, of_phases(first))
        return f.Par(space, block_of(binds, (total,)), (f.Out("keep", target=target),))

    def phases(self, site: Site) -> dict[int, int]:
        """The dimensions of phases (`polyphase.py`) that a point can keep, with how many there are."""
        found: dict[int, int] = {}
        for k in reversed(of_phases(site)):
            number = length.value if isinstance(length := site.dims[k], f.Const) else None
            if isinstance(number, int) and 0 < number * prod(found.values()) <= PHASES:
                found = {k: number, **found}
        return found

    def rows(self, sites: list[Site], space: Space, phases: dict[int, int], target: f.Var | None) -> f.Par:
        """The sums at these phases of a place are kept by one point."""
        places, names = [place for place, _ in space], [sites[0].solved[k] for k in phases]
        asked = [k for k in of_phases(sites[0]) if k not in phases]
        start: f.Atom = f.Const(0.0, sites[0].value.ty)
        with self.b.inside() as binds:
            numbers = list[f.Atom]()
            for phase in product(*map(range, phases.values())):
                mine = [site for site in sites if [site.offsets[name] for name in names] == [*phase]]
                if target is not None:
                    at = dict(zip(phases, map(integer, phase), strict=True))
                    here = [at.get(k, place) for k, place in enumerate(places)]
                    start = self.b.op("index", (target, *here), unchecked=True)
                numbers.append(self.total(start, mine, places, asked))
            for n in reversed(phases.values()):
                numbers = [self.b.op("array", numbers[i : i + n]) for i in range(0, len(numbers), n)]
        others = [k for k in range(len(space)) if k not in phases]
        order = [[*others, *phases].index(k) for k in range(len(space))]
        own, sizes = tuple([space[k] for k in others]), tuple([space[k][1] for k in phases])
        out = f.Out("keep", inner=sizes, order=tuple(order) if order != sorted(order) else ())
        return f.Par(own, block_of(binds, numbers), (out,))

    def total(self, total: f.Atom, sites: list[Site], places: list[f.Var], asked: list[int]) -> f.Atom:
        """A number with what points add to a place, which is asked which of the sites these are: by its phases, in
        these dimensions."""
        b = self.b
        if not asked or not sites:
            for site in sites:
                total = b.op("acc_add", (total, self.point(site, places)))
            return total
        k, groups = asked[0], dict[int, list[Site]]()
        for site in sites:
            groups.setdefault(site.offsets[site.solved[k]], []).append(site)
        every = sites[0].dims[k] == integer(len(groups))
        return self.of_phase(total, list(groups.items()), every, places, asked)

    def of_phase(
        self, total: f.Atom, groups: list[tuple[int, list[Site]]], every: bool, places: list[f.Var], asked: list[int]
    ) -> f.Atom:  # fmt: skip
        """The same, where the first dimension is asked for; `every` if one of these phases is that of the place."""
        if not groups:
            return total
        b, ((phase, mine), *others) = self.b, groups
        with b.inside() as here:
            its = self.total(total, mine, places, asked[1:])
        if every and not others:
            b.binds += here
            return its
        with b.inside() as rest:
            other = self.of_phase(total, others, every, places, asked)
        cond = b.op("eq", (places[asked[0]], integer(phase)))
        return b.one(f.If(cond, block_of(here, (its,)), block_of(rest, (other,))), total.ty, "sum")

    def point(self, site: Site, places: list[f.Var]) -> f.Atom:
        """What comes from the point that adds to this place, if there is one."""
        b, inside = self.b, list[f.Atom]()
        copier = Copier(self.supply, {})
        counts = site.counts
        for index, place, length in zip(site.solved, places, site.dims, strict=False):
            offset, count = site.offsets[index], counts[index]
            if is_phase(site, index):
                copier.atoms[index] = integer(0)
                continue
            at = copier.atoms[index] = b.op("sub", (place, integer(offset))) if offset else place
            if index in site.rings:
                length, turns = site.rings[index]
                if turns:
                    at = b.op("sub" if turns > 0 else "add", (at, length))
                copier.atoms[index] = b.op("mod", (at, length), ring=True)
                continue
            if offset > 0:
                inside.append(b.op("ge", (at, integer(0))))
            if offset < 0 or length != count:
                inside.append(b.op("lt", (at, count)))
        self.turn(copier, site, places)
        for cond, truth in site.guards:
            if self.decided(cond, site, places) is truth:
                continue
            self.copy(copier, cond)
            holds = copier.atom(cond)
            inside.append(holds if truth else b.op("not", (holds,)))
        if not inside:
            return self.value(copier, site)
        every = all_hold(b, inside)
        with b.inside() as binds:
            value = self.value(copier, site)
        zero = f.Block((), (f.Const(0.0, value.ty),))
        return b.one(f.If(every, block_of(binds, (value,)), zero), value.ty, "added")

    def turn(self, copier: Copier, site: Site, places: list[f.Var]) -> None:
        """Writes places on rings beside the point as places beside the place that it adds to."""
        at, lengths = dict(zip(site.solved, places, strict=False)), {i: length for i, (length, _) in site.rings.items()}
        for name in [bind.vars[0].name for bind in self.code_of(site.value) if bind.vars[0].name in self.rings]:
            found = steps_from(self.affine, self.rings[name], site.offsets, lengths)
            if found is not None:
                index, steps = found
                beside = self.b.op("add", (at[index], integer(steps))) if steps else at[index]
                copier.atoms[name] = self.b.op("mod", (beside, lengths[index]), ring=True) if steps else beside

    def decided(self, cond: f.Atom, site: Site, places: list[f.Var]) -> bool | None:
        """Whether a condition holds for the points of all places that are there, if it is known."""
        op = next((bind.rhs for bind in self.code if cond in bind.vars), None)
        if not isinstance(op, f.Op) or site.rings:
            return None
        args = []
        for arg in op.args:
            total = self.affine.sum(arg)
            for index, place in zip(site.solved, places, strict=False):
                factor = total.get(index, 0)
                total = combined(total, {index: -1, place.name: 1, ONE: -site.offsets[index]}, factor)
            args.append(f.Var(self.supply.fresh("at"), arg.ty))
            self.affine.sums[args[-1].name] = total
        return Conditions(self.affine).decided(replace(op, args=tuple(args)))

    def value(self, copier: Copier, site: Site) -> f.Atom:
        self.copy(copier, site.value)
        return copier.atom(site.value)

    def copy(self, copier: Copier, atom: f.Atom) -> None:
        """Writes what computes a value, for the point that is meant."""
        for bind in self.code_of(atom):
            if bind.vars[0].name not in copier.atoms:
                self.straight(copier, (bind,))

    def straight(self, copier: Copier, binds: tuple[f.Bind, ...]) -> None:
        """Writes bindings, with choices in place of branches."""
        for bind in binds:
            match bind.rhs:
                case f.If(cond, then, other):
                    self.straight(copier, (*then.binds, *other.binds))
                    for var, yes, no in zip(bind.vars, then.results, other.results, strict=True):
                        args = tuple(map(copier.atom, (cond, yes, no)))
                        copier.atoms[var.name] = self.b.op("select", args)
                case _:
                    self.b.binds += copier.binds((bind,))

    def again_at(self, sites: list[Site]) -> int:
        """How much is computed more often than once, without guards against NaN."""
        ops = {bind.vars[0].name: bind.rhs for bind in self.code if isinstance(bind.rhs, f.Op)}
        code = [{bind.vars[0].name for atom in (site.value, *[cond for cond, _ in site.guards])
                 for bind in self.code_of(atom)} for site in sites]  # fmt: skip
        cold = guards(ops)
        work = [len(one) - OF_GUARD * len(one & cold) for one in (*code, set().union(*code))]
        return sum(work[:-1]) - work[-1]

    def size(self, site: Site) -> int:
        """How much its places compute.  Its conditions must not read: they are asked for points that are not there."""
        conditions = [self.code_of(cond) for cond, _ in site.guards]
        if not all(is_cheap(bind, False) for binds in conditions for bind in binds):
            raise Unfit
        return len(self.code_of(site.value)) + sum(map(len, conditions))


def of_phases(site: Site) -> list[int]:
    """The dimensions of phases (`polyphase.py`)."""
    return [k for k, index in enumerate(site.solved) if is_phase(site, index)]


def is_phase(site: Site, index: str) -> bool:
    """True for an index of one step."""
    return site.counts[index] == integer(1)
