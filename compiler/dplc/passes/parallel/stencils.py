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
must be cheap.
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, combined
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside, names, rhs_mentions
from dplc.passes.parallel.scattered import Loop, Unfit, is_in
from dplc.passes.simplify.purity import HERE, droppable

SITES, MOST = 16, 96  # of an accumulator, and operations that its places compute, at most
Guard = tuple[f.Atom, bool]  # a condition, and whether it holds


@node
class Site:
    """An addition: the loops and the conditions around it; what is added to each index is in `offsets`."""

    loops: tuple[Loop, ...]
    guards: tuple[Guard, ...]
    value: f.Atom
    dims: tuple[f.Atom, ...]
    solved: tuple[str, ...]  # the index of each place
    offsets: dict[str, int]
    rings: dict[str, tuple[f.Atom, int]]  # the length n, and t: the place is that plus t n, modulo n


def stencil(bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply) -> list[f.Bind] | None:
    """The bindings in place of a nest that only adds; None if it is no stencil."""
    try:
        found = _Stencil(bind, par, affine, supply)
        return found.written(bind, par)
    except Unfit:
        return None


class _Stencil:
    def __init__(self, bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply) -> None:
        self.affine, self.supply = affine, supply
        self.code: list[f.Bind] = []  # what computes numbers and parts of arrays
        self.rings: dict[str, f.Op] = {}
        self.parts: dict[str, tuple[f.Var, tuple[f.Atom, ...]]] = {}  # of arrays
        self.sites: list[list[Site]] = [[] for _ in par.outs]
        self.inside = {var.name for var in bound_inside(par)}
        self.walk(par, {out.acc.name: k for k, out in enumerate(par.outs) if out.acc}, (), ())

    # ---- what the nest adds

    def walk(self, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]) -> None:
        loops = (*loops, *[Loop(*dimension) for dimension in par.space])
        for index, count in par.space:
            self.affine.loop(index, count)
        if par.ordered or any(name in self.inside for name in names(tuple([loop.count for loop in loops]))):
            raise Unfit
        self.block(par.body, accs, loops, guards)

    def block(
        self, block: f.Block, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]
    ) -> None:
        for bind in block.binds:
            held = [name for name in rhs_mentions(bind.rhs) if name in accs]
            match bind.rhs:
                case f.Par(outs=outs) as inner if held:
                    own = {out.acc.name: accs[out.target.name] for out in outs
                           if out.acc and isinstance(out.target, f.Var) and out.target.name in accs}  # fmt: skip
                    if len(own) < len(outs):
                        raise Unfit
                    self.walk(inner, dict(own), loops, guards)
                    accs |= dict(zip([var.name for var in bind.vars], own.values(), strict=True))
                case f.If(cond, then, other) if held:
                    both = dict(accs), dict(accs)
                    self.block(then, both[0], loops, (*guards, (cond, True)))
                    self.block(other, both[1], loops, (*guards, (cond, False)))
                    accs |= self.after(bind.vars, (then, other), both)
                case f.Op("acc_index", (acc, value, *rest)) as op if len(held) == 1 and is_in(acc, accs):
                    k = accs[held[0]]
                    rank = rank_of(acc.ty)
                    if op.attr("rank") != rank or len(rest) != 2 * rank or not isinstance(value.ty, f.Num):
                        raise Unfit
                    self.sites[k].append(self.site(loops, guards, value, rest[:rank], rest[rank:]))
                    accs[bind.vars[0].name] = k
                case f.Op("fill"):  # it is of no use, as is seen where it is not cheap
                    self.code.append(bind)
                case rhs if not held and droppable(rhs):
                    self.affine.define(bind)
                    self.code.append(self.of_whole(bind))
                    if isinstance(rhs, f.Op) and rhs.attr("ring"):
                        self.rings[bind.vars[0].name] = rhs
                case _:
                    raise Unfit

    def of_whole(self, bind: f.Bind) -> f.Bind:
        """The binding; a read of a part of an array is one of that array."""
        match bind.rhs:
            case f.Op("index", (f.Var(name) as array, *at)) as op:
                whole, before = self.parts.get(name, (array, ()))
                self.parts[bind.vars[0].name] = whole, (*before, *at)
                return f.Bind(bind.vars, replace(op, args=(whole, *before, *at), attrs=(("unchecked", HERE),)))
            case _:
                return bind

    def after(
        self, variables: tuple[f.Var, ...], arms: tuple[f.Block, ...], accs: tuple[dict[str, int], ...]
    ) -> dict[str, int]:
        """The accumulators that a branch gives."""
        made = {}
        for i, var in enumerate(variables):
            numbers = {known.get(atom.name) for block, known in zip(arms, accs, strict=True)
                       if isinstance(atom := block.results[i], f.Var)}  # fmt: skip
            number = numbers.pop() if len(numbers) == 1 else None
            if number is None:
                raise Unfit
            made[var.name] = number
        return made

    def site(
        self, loops: tuple[Loop, ...], guards: tuple[Guard, ...], value: f.Atom, dims: list[f.Atom],
        places: list[f.Atom],
    ) -> Site:  # fmt: skip
        indices = {loop.index.name for loop in loops}
        offsets: dict[str, int] = {}
        rings: dict[str, tuple[f.Atom, int]] = {}
        for place, length in zip(places, dims, strict=True):
            at = self.affine.sum(place)
            if (op := self.rings.get(place.name) if isinstance(place, f.Var) else None) is not None:
                found = self.affine.on_ring(op)
                if found is None or self.affine.sum(length) != self.affine.sum(op.args[1]):
                    raise Unfit
                at = combined({found[0]: 1}, {ONE: 1}, found[1])
                rings[found[0]] = op.args[1], found[2]
            mine = [str(term) for term in at if term != ONE]
            if len(mine) != 1 or mine[0] not in indices or at[mine[0]] != 1 or mine[0] in offsets:
                raise Unfit
            offsets[mine[0]] = at.get(ONE, 0)
        if len(offsets) < len(loops) or any(name in self.inside for name in names(tuple(dims))):
            raise Unfit
        return Site(loops, guards, value, tuple(dims), tuple(offsets), offsets, rings)

    # ---- the sums

    def written(self, bind: f.Bind, par: f.Par) -> list[f.Bind]:
        if not any(site.guards or any(site.offsets.values()) for sites in self.sites for site in sites):
            raise Unfit
        self.b = Builder(self.supply)
        for var, out, sites in zip(bind.vars, par.outs, self.sites, strict=True):
            made = self.sums(sites)
            if isinstance(out.target, f.Var):
                if not self.is_whole(sites[0]):
                    raise Unfit
                made = f.Op("acc_add", (out.target, self.b.one(made, var.ty, var.name)))
            self.b.binds.append(f.Bind((var,), made))
        return list(block_of(self.b.binds, ()).binds)

    def is_whole(self, site: Site) -> bool:
        """True if there are as many places as points, but for a constant: then asking all places costs no more."""
        counts = {loop.index.name: loop.count for loop in site.loops}
        return all(set(combined(self.affine.sum(length), self.affine.sum(counts[index]), -1)) <= {ONE}
                   for index, length in zip(site.solved, site.dims, strict=True))  # fmt: skip

    def sums(self, sites: list[Site]) -> f.Par:
        """The sums of what is added to one accumulator, at each of its places."""
        first = sites[0] if sites else None
        if first is None or len(sites) > SITES or any(site.loops != first.loops for site in sites):
            raise Unfit
        if sum(map(self.size, sites)) > MOST:
            raise Unfit
        order = [loop.index.name for loop in first.loops]
        sites = sorted(sites, key=lambda site: [-site.offsets[index] for index in order])
        b = self.b
        places = [b.var("place", f.I64) for _ in first.dims]
        with b.inside() as binds:
            total: f.Atom = f.Const(0.0, first.value.ty)
            for site in sites:
                total = b.op("acc_add", (total, self.point(site, places)))
        return f.Par(tuple(zip(places, first.dims, strict=True)), block_of(binds, (total,)), (f.Out("keep"),))

    def point(self, site: Site, places: list[f.Var]) -> f.Atom:
        """What comes from the point that adds to this place, if there is one."""
        b, inside = self.b, list[f.Atom]()
        copier = Copier(self.supply, {})
        counts = {loop.index.name: loop.count for loop in site.loops}
        for index, place, length in zip(site.solved, places, site.dims, strict=True):
            offset, count = site.offsets[index], counts[index]
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
        for cond, truth in site.guards:
            self.copy(copier, cond)
            holds = copier.atom(cond)
            inside.append(holds if truth else b.op("not", (holds,)))
        if not inside:
            return self.value(copier, site)
        every = inside[0]
        for other in inside[1:]:
            every = b.op("and", (every, other))
        with b.inside() as binds:
            value = self.value(copier, site)
        zero = f.Block((), (f.Const(0.0, value.ty),))
        return b.one(f.If(every, block_of(binds, (value,)), zero), value.ty, "added")

    def value(self, copier: Copier, site: Site) -> f.Atom:
        self.copy(copier, site.value)
        return copier.atom(site.value)

    def copy(self, copier: Copier, atom: f.Atom) -> None:
        """Writes what computes a value, for the point that is meant."""
        for bind in self.needed(atom):
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

    def size(self, site: Site) -> int:
        """How much its places compute.  Its conditions must not read: they are asked for points that are not there."""
        conditions = [self.needed(cond) for cond, _ in site.guards]
        if not all(is_cheap(bind, False) for binds in conditions for bind in binds):
            raise Unfit
        return len(self.needed(site.value)) + sum(map(len, conditions))

    def needed(self, atom: f.Atom) -> list[f.Bind]:
        """The bindings that compute a value, in order."""
        wanted = set(names((atom,)))
        kept: list[f.Bind] = []
        for bind in reversed(self.code):
            if wanted.intersection([var.name for var in bind.vars]):
                if not is_cheap(bind, True):
                    raise Unfit
                kept.append(bind)
                wanted.update(rhs_mentions(bind.rhs))
        return kept[::-1]


def is_cheap(bind: f.Bind, reads: bool) -> bool:
    """True for arithmetic, under conditions too; and for reads that need no condition inside."""
    match bind.rhs:
        case f.Op("index"):
            return reads and isinstance(bind.vars[0].ty, f.Num)
        case f.Op(op):
            cheap = op in ("dim", "acc_add") or (OPS[op].elementwise and OPS[op].cheap)
            return cheap and isinstance(bind.vars[0].ty, f.Num)
        case f.If(_, then, other):
            return all(is_cheap(one, False) for one in (*then.binds, *other.binds))
        case _:
            return False
