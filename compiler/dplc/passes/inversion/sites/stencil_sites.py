"""What the points of a stencil add, where, and under which conditions: what `stencils.py` makes sums of.

A place is each index of the nest plus a constant, so the point follows from the place.  What a point adds at one place,
in both arms of a branch too, is one number.  An addition where an index has one value, as at the edge of a grid, is
that of an edge.  So are those where a place is cut off: `min (max (i - 2) 0) (n - 1)` is `i - 2`, and 0 where i < 2.
"""

from __future__ import annotations

from collections.abc import Collection

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined
from dplc.flat.build import block_of
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside, is_in, mentions, names, needed, rhs_mentions
from dplc.passes.inversion.nests import Guard, Loop, Unfit
from dplc.passes.simplify.purity import HERE, droppable


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

    @property
    def counts(self) -> dict[str, f.Atom]:
        return {loop.index.name: loop.count for loop in self.loops}

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


@node
class Border:
    """An addition where a place is cut off at an end: its index and `beyond` are negative, or not less than a length.
    The operation at the `end` is `max` or `min`."""

    index: f.Var
    length: f.Atom
    beyond: int
    site: Site
    end: str


@node
class Cut:
    """A place that is cut off: what it would be, an index and a constant; and the length that it is in."""

    index: f.Var
    beyond: int
    uncut: f.Atom
    length: f.Atom
    ends: tuple[str, ...]  # at which it is, as the operations that do so


class Additions:
    """What a nest adds to its accumulators, by their numbers."""

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
        self.edges: list[list[Edge | Border]] = [[] for _ in par.outs]
        self.inside = {var.name for var in bound_inside(par)}
        self.walk(par, {out.acc.name: k for k, out in enumerate(par.outs) if out.acc}, (), ())

    # ---- what the nest adds

    def walk(self, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]) -> None:
        loops = (*loops, *[Loop(*dimension) for dimension in par.space])
        self.affine.loops(par)
        if par.ordered or any(name in self.inside for name in names(tuple([loop.count for loop in loops]))):
            raise Unfit
        self.block(par.body, accs, loops, guards)

    def block(self, block: f.Block, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]) -> None:
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
        found = [(place, self.cut(place, length, loops)) for place, length in zip(places, dims, strict=True)]
        cuts = {place: cut for place, cut in found if cut is not None}
        uncut = [cuts[place].uncut if place in cuts else place for place in places]
        site = self.site(loops, guards, value, dims, uncut)
        if cuts and not all(self.is_there(cuts.get(place), place, length, site)
                            for place, length in zip(places, dims, strict=True)):  # fmt: skip
            raise Unfit
        for cut in cuts.values():
            for end in cut.ends:
                if end == "max" or not self.is_within(cut, site.counts[cut.index.name]):
                    whole = Site(loops, guards, value, tuple(dims), tuple(places), (), {}, {})
                    self.edges[k].append(Border(cut.index, cut.length, cut.beyond, whole, end))
                    guards = (*guards, (self.inside_of(cut, end), True))
        while (other := next((other for other in self.sites[k] if self.are_one(other, site)), None)) is not None:
            self.sites[k].remove(other)
            site = self.together(other, site)
        self.sites[k].append(site)

    def cut(self, place: f.Atom, length: f.Atom, loops: tuple[Loop, ...]) -> Cut | None:
        """What a place is that is cut off at the ends of a length."""
        ends: dict[str, Sum] = {"max": {}, "min": combined(self.affine.sum(length), {ONE: 1}, -1)}
        uncut, sides = place, list[str]()
        while isinstance(uncut, f.Var) and (op := self.affine.cuts.get(uncut.name)) is not None and op.op not in sides:
            rest = [a for a in op.args if combined(self.affine.sum(a), ends[op.op], -1)]
            if len(rest) != 1:
                return None
            sides.append(op.op)
            (uncut,) = rest
        total = self.affine.sum(uncut)
        index = next((loop.index for loop in loops if total.keys() <= {loop.index.name, ONE}), None)
        beyond = total.get(ONE, 0)
        if index is None or not sides:
            return None
        return Cut(index, beyond, uncut, length, tuple([end for end in sides if end == "min" or beyond < 0]))

    def is_there(self, cut: Cut | None, place: f.Atom, length: f.Atom, site: Site) -> bool:
        """True if an array has a place whatever conditions say: an edge asks for no others than those of indices."""
        if cut is None:
            return self.affine.is_place((length,), (place,))
        count, last = site.counts[cut.index.name], combined(self.affine.sum(length), {ONE: 1}, -1)
        some = self.affine.is_natural(last) or self.affine.sum(length) == self.affine.sum(count)
        low = cut.beyond >= 0 or "max" in cut.ends
        return some and low and ("min" in cut.ends or self.is_within(cut, count))

    def is_within(self, cut: Cut, count: f.Atom) -> bool:
        """True if no step of a loop is cut off at the end."""
        rest = combined(self.affine.sum(cut.length), self.affine.sum(count), -1)
        return self.affine.is_natural(combined(rest, {ONE: 1}, -cut.beyond))

    def inside_of(self, cut: Cut, end: str) -> f.Var:
        """Whether a place need not be cut off at an end, as a condition."""
        low = end == "max"
        inside = f.Var(self.supply.fresh("inside"), f.BOOL)
        asks = f.Op("ge" if low else "lt", (cut.uncut, f.Const(0, f.I64) if low else cut.length))
        self.code.append(f.Bind((inside,), asks))
        return inside

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

    # ---- what computes a value

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
