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

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, combined
from dplc.flat.build import Builder, all_hold, block_of, integer
from dplc.flat.conditions import Conditions
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside, mentions, names, needed, rhs_mentions
from dplc.passes.inversion.rings import steps_from
from dplc.passes.inversion.scattered import Loop, Unfit, is_in
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
    places: tuple[f.Atom, ...]
    solved: tuple[str, ...]  # the index of each place
    offsets: dict[str, int]
    rings: dict[str, tuple[f.Atom, int]]  # the length n, and t: the place is that plus t n, modulo n

    def is_beside(self, other: Site) -> bool:
        """True if both add at the same places."""
        mine, its = [(site.loops, site.dims, site.solved, site.offsets, site.rings) for site in (self, other)]
        return mine == its


@node
class Edge:
    """An addition where an index of a nest has one value, `number` and a constant."""

    index: f.Var
    number: f.Atom
    constant: int
    site: Site


def stencil(
    bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply, shared: Collection[str]
) -> tuple[set[int], list[f.Bind]]:  # fmt: skip
    """For a nest that only adds: the numbers of the accumulators that are stencils, and their sums.  Accumulators of a
    nest around this one are `shared`."""
    try:
        return _Stencil(par, affine, supply, shared).written(bind, par)
    except Unfit:
        return set(), []


class _Stencil:
    def __init__(self, par: f.Par, affine: Affine, supply: f.Supply, shared: Collection[str]) -> None:
        self.affine, self.supply, self.shared = affine, supply, shared
        self.code: list[f.Bind] = []  # what computes numbers and parts of arrays
        self.rings: dict[str, f.Op] = {}
        self.parts: dict[str, tuple[f.Var, tuple[f.Atom, ...]]] = {}  # of arrays
        self.opaque: set[str] = set()  # what cannot be computed again alone
        self.unfit: set[int] = set()  # accumulators that stay as they are
        self.depths: dict[str, int] = {}  # of what is computed: under how many conditions
        self.equal: dict[Guard, tuple[f.Var, f.Atom, int]] = {}  # what conditions say: an index is a sum
        self.sites: list[list[Site]] = [[] for _ in par.outs]
        self.edges: list[list[Edge]] = [[] for _ in par.outs]
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
                    accs |= self.after(bind.vars, bind.rhs, both, len(guards))
                case f.Op("acc_index", (acc, value, *rest)) as op if len(held) == 1 and is_in(acc, accs):
                    k = accs[held[0]]
                    rank = rank_of(acc.ty)
                    if op.attr("rank") != rank or len(rest) != 2 * rank or not isinstance(value.ty, f.Num):
                        raise Unfit
                    try:
                        self.add(k, loops, guards, value, rest[:rank], rest[rank:])
                    except Unfit:
                        self.unfit.add(k)
                    accs[bind.vars[0].name] = k
                case f.Op("fill"):  # it is of no use, as is seen where it is not cheap
                    self.code.append(bind)
                case rhs if not held and droppable(rhs):
                    self.affine.define(bind)
                    self.code.append(self.of_whole(bind))
                    self.depths |= {var.name: len(guards) for var in bind.vars}
                    self.compare(bind, loops)
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
        self, variables: tuple[f.Var, ...], branch: f.If, accs: tuple[dict[str, int], ...], depth: int
    ) -> dict[str, int]:  # fmt: skip
        """The accumulators that a branch gives.  Its other results are choices."""
        made = {}
        for var, yes, no in zip(variables, branch.then.results, branch.else_.results, strict=True):
            held = [known.get(atom.name) if isinstance(atom, f.Var) else None
                    for atom, known in zip((yes, no), accs, strict=True)]  # fmt: skip
            if held[0] != held[1]:
                raise Unfit
            if held[0] is None:
                self.choose(var, (branch.cond, yes, no), depth)
            else:
                made[var.name] = held[0]
        return made

    def choose(self, var: f.Var, args: tuple[f.Atom, ...], depth: int) -> None:
        """One of two numbers.  It is not computed again where it reads what only its condition says to be there."""
        if isinstance(var.ty, f.Num) and not self.reads_deeper(args, depth):
            self.code.append(f.Bind((var,), f.Op("select", args)))
            self.depths[var.name] = depth
        else:
            self.opaque.add(var.name)

    def reads_deeper(self, atoms: tuple[f.Atom, ...], depth: int) -> bool:
        """True if what computes some values reads under more conditions than so many, or cannot be told."""
        try:
            code = [bind for atom in atoms for bind in self.code_of(atom)]
        except Unfit:
            return True
        return any(self.depths[bind.vars[0].name] > depth and not is_cheap(bind, False) for bind in code)

    def compare(self, bind: f.Bind, loops: tuple[Loop, ...]) -> None:
        """Notes a condition that an index, or the sum of it and a constant, is what the nest does not compute."""
        match bind.rhs:
            case f.Op("eq" | "ne" as name, (a, b)):
                pass
            case _:
                return
        for one, number in ((a, b), (b, a)):
            total = self.affine.sum(one)
            for loop in loops:
                if total.keys() - {ONE} == {loop.index.name} and total[loop.index.name] == 1:
                    if self.is_fixed(number):
                        self.equal[bind.vars[0], name == "eq"] = loop.index, number, -total.get(ONE, 0)

    def is_fixed(self, number: f.Atom) -> bool:
        """True for a sum of what the nest does not compute."""
        terms = [term[0] if isinstance(term, tuple) else term for term in self.affine.sum(number)]
        return self.inside.isdisjoint([str(term) for term in terms])

    def add(
        self, k: int, loops: tuple[Loop, ...], guards: tuple[Guard, ...], value: f.Atom, dims: list[f.Atom],
        places: list[f.Atom],
    ) -> None:  # fmt: skip
        """Notes an addition to accumulator number `k`."""
        for guard in guards:
            if guard in self.equal:
                rest = tuple([other for other in guards if other is not guard])
                site = Site(loops, rest, value, tuple(dims), tuple(places), (), {}, {})
                self.edges[k].append(Edge(*self.equal[guard], site))
                return
        site = self.site(loops, guards, value, dims, places)
        while (other := next((other for other in self.sites[k] if self.are_one(other, site)), None)) is not None:
            self.sites[k].remove(other)
            site = self.together(other, site)
        self.sites[k].append(site)

    def are_one(self, first: Site, second: Site) -> bool:
        """True if both add at one place, under the same conditions, or in the arms of a branch that only computes."""
        if not first.is_beside(second):
            return False
        if first.guards == second.guards:
            return True
        *around, (cond, truth) = first.guards or ((None, True),)
        if second.guards != (*around, (cond, not truth)):
            return False
        return not self.reads_deeper((first.value, second.value), len(around))

    def together(self, first: Site, second: Site) -> Site:
        """Two sites as one."""
        var = f.Var(self.supply.fresh("added"), first.value.ty)
        around = first.guards
        if around == second.guards:
            self.code.append(f.Bind((var,), f.Op("acc_add", (first.value, second.value))))
            self.depths[var.name] = len(around)
        else:
            *outer, (cond, truth) = around
            around = tuple(outer)
            values = (first.value, second.value) if truth else (second.value, first.value)
            self.choose(var, (cond, *values), len(around))
        return Site(first.loops, around, var, first.dims, first.places, first.solved, first.offsets, first.rings)

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
        return Site(loops, guards, value, tuple(dims), tuple(places), tuple(offsets), offsets, rings)

    # ---- the sums

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
                if not self.edges[k] and len(sites) == 1 and not sites[0].guards:
                    raise Unfit  # each place is added to once at most: there is nothing to sum
            else:
                target = b.one(f.Op("acc_zeros", (out.target, *sites[0].dims)), var.ty, var.name)
        made: f.Rhs = self.sums(sites, target)
        if isinstance(out.target, f.Var) and target is None:
            made = f.Op("acc_add", (out.target, b.one(made, var.ty, var.name)))
        for edge in self.edges[k]:
            made = self.edged(b.one(made, var.ty, var.name), edge, par)
        return made

    # ---- the edges

    def edged(self, acc: f.Var, edge: Edge, par: f.Par) -> f.If:
        """Adds at an edge, if the nest has such points."""
        b, site = self.b, edge.site
        loops = {loop.index: loop.count for loop in site.loops}
        copier = Copier(self.supply, {})
        self.again(copier, (edge.number,))
        at = copier.atom(edge.number)
        if edge.constant:
            at = b.op("add", (at, integer(edge.constant)))
        copier.atoms[edge.index.name] = at
        low, high = b.op("ge", (at, integer(0))), b.op("lt", (at, loops.pop(edge.index)))
        space = [(copier.var(index), count) for index, count in loops.items()]
        with b.inside() as binds:
            if space:
                inner = b.var(acc.name, acc.ty)
                with b.inside() as points:
                    total = self.under(copier, site.guards, site, inner)
                made = f.Par(tuple(space), block_of(points, (total,)), (f.Out("add", target=acc, acc=inner),), par.span)
                after: f.Atom = b.one(made, acc.ty, acc.name)
            else:
                after = self.under(copier, site.guards, site, acc)
        there = b.op("and", (low, high))
        return f.If(there, block_of(binds, (after,)), f.Block((), (acc,)))

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
        counts = {loop.index.name: loop.count for loop in site.loops}
        return all(set(combined(self.affine.sum(length), self.affine.sum(counts[index]), -1)) <= {ONE}
                   for index, length in zip(site.solved, site.dims, strict=True))  # fmt: skip

    def sums(self, sites: list[Site], target: f.Var | None) -> f.Par:
        """The sums of what is added to one accumulator, at each of its places; it begins as `target`, or as zeros."""
        first = sites[0] if sites else None
        if first is None or len(sites) > SITES or any(site.loops != first.loops for site in sites):
            raise Unfit
        if sum(map(self.size, sites)) > MOST:
            raise Unfit
        order = [loop.index.name for loop in first.loops]
        sites = sorted(sites, key=lambda site: [-site.offsets[index] for index in order])
        b = self.b
        places = [b.var("place", f.I64) for _ in first.dims]
        for place, length in zip(places, first.dims, strict=True):
            self.affine.loop(place, length)
        with b.inside() as binds:
            total: f.Atom = f.Const(0.0, first.value.ty)
            if target is not None:
                total = b.op("index", (target, *places), unchecked=True)
            for site in sites:
                total = b.op("acc_add", (total, self.point(site, places)))
        out = f.Out("keep", target=target)
        return f.Par(tuple(zip(places, first.dims, strict=True)), block_of(binds, (total,)), (out,))

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
        at, lengths = dict(zip(site.solved, places, strict=True)), {i: length for i, (length, _) in site.rings.items()}
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
            for index, place in zip(site.solved, places, strict=True):
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

    def size(self, site: Site) -> int:
        """How much its places compute.  Its conditions must not read: they are asked for points that are not there."""
        conditions = [self.code_of(cond) for cond, _ in site.guards]
        if not all(is_cheap(bind, False) for binds in conditions for bind in binds):
            raise Unfit
        return len(self.code_of(site.value)) + sum(map(len, conditions))

    def code_of(self, atom: f.Atom) -> list[f.Bind]:
        """The bindings that compute a value, in order."""
        code = self.needed(self.code, (atom,))
        if not all(is_cheap(bind, True) for bind in code):
            raise Unfit
        return code

    def needed(self, binds: list[f.Bind], atoms: tuple[f.Atom, ...]) -> list[f.Bind]:
        """Those of the bindings that compute values, in order; these must need nothing that is not computed again."""
        code = needed(binds, names(atoms))
        if not self.opaque.isdisjoint(mentions(block_of([*code], atoms))):
            raise Unfit
        return code


def is_cheap(bind: f.Bind, reads: bool) -> bool:
    """True for arithmetic, under conditions too; and for reads that need no condition inside."""
    match bind.rhs:
        case f.Op("index"):
            return reads and isinstance(bind.vars[0].ty, f.Num)
        case f.Op(op):
            cheap = op in ("dim", "acc_add") or (OPS[op].elementwise and OPS[op].cheap) or bool(bind.rhs.attr("ring"))
            return cheap and isinstance(bind.vars[0].ty, f.Num)
        case f.If(_, then, other):
            return all(is_cheap(one, False) for one in (*then.binds, *other.binds))
        case _:
            return False
