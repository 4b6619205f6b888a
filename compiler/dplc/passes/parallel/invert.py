"""Inversion: additions that the points of a nest scatter become a sum at each place.

    c = par i < n to add (c = null) {             h = m - 1 zeros, g, m - 1 zeros
      par u < m to add (c) {                      c = par p < n + m - 1 to keep {
        x = index g i; y = index k u                s = for u < m state (s = 0) {
        z = mul x y                         =>        x = index h (p - u + m - 1); y = index k u
        j = add i u                                   z = mul x y
        acc_index c z at j } }                        s + z } }

A place is an index of the nest, or the sum of two: one of them follows from the place and the others, which are summed
over, in the order of the nest.  What is read at an index that follows from a sum is padded with zeros; then the points
must give zero where they read zero, as masked products with a cotangent do.  Points are independent then, and are
computed in lanes: what is read along the last dimension of the places is turned so that it lies side by side.

It is done if some array is read more than once, so that the sums are more work than the copies.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.dims import Dims
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import every, rhs_mentions, with_blocks
from dplc.passes.parallel.zeros import gives_zero
from dplc.passes.simplify.purity import droppable

MOST = 16  # operations of a point, which is computed again for each of its places


@node
class Loop:
    index: f.Var
    count: f.Atom


@node
class Added:
    """An addition at places of an accumulator; `loops` are those around it."""

    loops: tuple[Loop, ...]
    value: f.Atom
    dims: tuple[f.Atom, ...]
    places: tuple[f.Atom, ...]


@node
class Read:
    """An element of an array from outside, at indices that are sums."""

    var: f.Var
    array: f.Var
    at: tuple[Sum, ...]

    def mentions(self) -> set[object]:
        return {term for total in self.at for term in total}


class Unfit(Exception):
    """A nest cannot be inverted."""


def inverted(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function, with its scattered additions inverted where this can be done and pays."""
    if not any(isinstance(bind.rhs, f.Par) and scatters(bind.rhs) for bind in every(fn.body)):
        return fn
    body = _Inverter(fn, supply).block(fn.body)
    return fn if body is fn.body else replace(fn, body=body)


def scatters(par: f.Par) -> bool:
    """True if points add to places that are not their own."""
    return not par.ordered and bool(par.outs) and all(out.kind == "add" for out in par.outs)


class _Inverter:
    def __init__(self, fn: f.Fn, supply: f.Supply) -> None:
        self.supply = supply
        self.dims = Dims(fn.body)
        self.affine = Affine(self.dims)

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            self.affine.define(bind)
            found = self.nest(bind, bind.rhs) if isinstance(bind.rhs, f.Par) and scatters(bind.rhs) else None
            if found is None:
                rhs = with_blocks(bind.rhs, self.block)
                found = [bind if rhs is bind.rhs else f.Bind(bind.vars, rhs)]
            binds += found
        same = len(binds) == len(block.binds) and all(a is b for a, b in zip(binds, block.binds, strict=True))
        return block if same else f.Block(tuple(binds), block.results)

    def nest(self, bind: f.Bind, par: f.Par) -> list[f.Bind] | None:
        try:
            points = Points(par, self.affine)
            sums = [Gathered(points, points.added[k]) for k in range(len(par.outs))]
        except Unfit:
            return None
        if not any(one.pays() for one in sums):
            return None
        b = Builder(self.supply)
        for var, out, one in zip(bind.vars, par.outs, sums, strict=True):
            made = one.write(b)
            last = b.binds[-1]
            assert out.target is not None and isinstance(last, f.Bind)
            if isinstance(out.target, f.Const):
                b.binds[-1] = f.Bind((var,), last.rhs)
            else:
                b.binds.append(f.Bind((var,), f.Op("acc_add", (out.target, made))))
        return list(block_of(b.binds, ()).binds)


class Points:
    """A nest: what its points compute, and what they add to each of its accumulators."""

    def __init__(self, par: f.Par, affine: Affine) -> None:
        self.affine = affine
        self.defined: dict[str, f.Rhs] = {}
        self.rows: dict[str, tuple[f.Var, tuple[f.Atom, ...]]] = {}  # parts of arrays from outside
        self.kept: dict[str, tuple[f.Atom, Loop, f.Atom]] = {}  # by inner Pars: an element, its index, a length
        self.added: dict[int, Added] = {}
        self.used = set(rhs_mentions(par))
        self.walk(par, {out.acc.name: k for k, out in enumerate(par.outs) if out.acc}, ())
        if len(self.added) < len(par.outs):
            raise Unfit

    def walk(self, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...]) -> None:
        """Walks a Par; `accs` are the names of accumulators in its body."""
        loops = (*loops, *[Loop(*dimension) for dimension in par.space])
        if any(isinstance(loop.count, f.Var) and loop.count.name in self.defined for loop in loops):
            raise Unfit
        for bind in par.body.binds:
            held = [accs[name] for name in rhs_mentions(bind.rhs) if name in accs]
            match bind.rhs:
                case f.Par() as inner if not inner.ordered:
                    self.inner(bind, inner, accs, loops)
                case f.Op("acc_index", (acc, value, *rest)) as op if len(held) == 1 and is_in(acc, accs):
                    rank = rank_of(acc.ty)
                    if op.attr("rank") != rank or len(rest) != 2 * rank or not isinstance(value.ty, f.Num):
                        raise Unfit
                    self.add(held[0], Added(loops, value, tuple(rest[:rank]), tuple(rest[rank:])))
                    accs = accs | {bind.vars[0].name: held[0]}
                case f.Op("acc_add", (acc, f.Var(name))) if len(held) == 1 and is_in(acc, accs) and name in self.kept:
                    value, own, length = self.kept[name]
                    self.add(held[0], Added((*loops, own), value, (length,), (own.index,)))
                    accs = accs | {bind.vars[0].name: held[0]}
                case f.Op("acc_extend", (f.Var(short), length)) if short in self.kept and not held:
                    value, own, _ = self.kept[short]
                    self.kept[bind.vars[0].name] = value, own, length
                case f.Op() if not held and droppable(bind.rhs):
                    self.plain(bind, bind.rhs)
                case f.Op("fill") if bind.vars[0].name not in self.used:
                    pass
                case _:
                    raise Unfit

    def inner(self, bind: f.Bind, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...]) -> None:
        names = dict[str, int]()
        for var, out, x in zip(bind.vars, par.outs, par.body.results, strict=True):
            match out:
                case f.Out("add", _, f.Var(name), f.Var() as acc) if name in accs:
                    names[acc.name] = accs[var.name] = accs[name]
                case f.Out("keep") if len(par.space) == 1 and isinstance(x.ty, f.Num):
                    self.kept[var.name] = x, Loop(*par.space[0]), par.space[0][1]
                case _:
                    raise Unfit
        self.walk(par, names, loops)

    def add(self, k: int, added: Added) -> None:
        if k in self.added:
            raise Unfit
        self.added[k] = added

    def plain(self, bind: f.Bind, op: f.Op) -> None:
        self.affine.define(bind)
        self.defined[bind.vars[0].name] = op
        if op.op == "index" and isinstance(op.args[0], f.Var):
            array, before = self.rows.get(op.args[0].name, (op.args[0], ()))
            self.rows[bind.vars[0].name] = array, (*before, *op.args[1:])


def is_in(atom: f.Atom, names: Iterable[str]) -> bool:
    return isinstance(atom, f.Var) and atom.name in names


class Gathered:
    """An addition as a sum at each place.  `solved` has the index of the nest that follows from each place; the others
    are summed over.  `shifts` has, for those that follow from a sum, the other index of it."""

    def __init__(self, points: Points, added: Added) -> None:
        self.points, self.affine, self.added = points, points.affine, added
        self.loops = {loop.index.name: loop for loop in added.loops}
        self.reads: list[Read] = []
        self.code: list[tuple[f.Var, f.Op]] = []
        self.seen: set[str] = set()
        self.collect(added.value)
        self.solved: list[str] = []
        self.shifts: dict[str, str] = {}
        for at in added.places:
            self.solve(self.affine.sum(at))
        self.summed = [loop for loop in added.loops if loop.index.name not in self.solved]
        self.check()

    def collect(self, atom: f.Atom) -> None:
        """Collects what computes a value: reads, and operations on numbers."""
        if not isinstance(atom, f.Var) or atom.name in self.seen:
            return
        self.seen.add(atom.name)
        op = self.points.defined.get(atom.name)
        if not isinstance(op, f.Op) or not isinstance(atom.ty, f.Num):
            if op is not None or not isinstance(atom.ty, f.Num):
                raise Unfit
            return
        if op.op == "index":
            array, at = self.points.rows[atom.name]
            if array.name in self.points.defined or array.name in self.points.kept:
                raise Unfit
            self.reads.append(Read(atom, array, tuple(map(self.affine.sum, at))))
            return
        if not (OPS[op.op].elementwise and OPS[op.op].cheap) or op.op == "cast":
            raise Unfit
        for arg in op.args:
            self.collect(arg)
        self.code.append((atom, op))

    def solve(self, at: Sum) -> None:
        """Finds the index of the nest that follows from a place."""
        terms = [term for term in at if term in self.loops]
        if len(terms) < len(at) or any(at[term] != 1 for term in terms) or len(terms) not in (1, 2):
            raise Unfit
        one, *others = sorted(terms, key=lambda term: not self.can_follow(str(term), terms))
        if str(one) in self.solved or (others and not self.can_follow(str(one), terms)):
            raise Unfit
        self.solved.append(str(one))
        if others:
            self.shifts[str(one)] = str(others[0])

    def can_follow(self, index: str, terms: list[object]) -> bool:
        """True if the points give zero where what is read at this index is zero."""
        padded = {read.var.name for read in self.reads if {index: 1} in read.at}
        return len(terms) == 1 or (bool(padded) and gives_zero(self.code, self.added.value, padded))

    def check(self) -> None:
        if len(self.code) > MOST or any(shift in self.solved for shift in self.shifts.values()):
            raise Unfit
        used = {a.name for _, op in self.code for a in op.args if isinstance(a, f.Var)}
        if used & self.loops.keys():
            raise Unfit
        for read in self.reads:
            for total in read.at:
                moved = set(total) & set(self.shifts)
                if moved and total != {next(iter(moved)): 1} and not self.is_place(total):
                    raise Unfit
                if any(isinstance(term, str) and term in self.points.defined for term in total):
                    raise Unfit

    def is_place(self, total: Sum) -> bool:
        return any(total == {index: 1, shift: 1} for index, shift in self.shifts.items())

    def pays(self) -> bool:
        """True if every array is read more than once, and something is summed."""
        every_loop = set(self.loops)
        return bool(self.summed) and not any(every_loop <= read.mentions() for read in self.reads)

    # ---- the code

    def write(self, b: Builder) -> f.Atom:
        """Writes the sums at all places."""
        self.b = b
        self.atoms: dict[object, f.Atom] = {}
        space = []
        for index in self.solved:
            place = b.var("place", f.I64)
            self.atoms[index] = place
            space.append((place, self.extent(index)))
        self.pads = {index: b.op("sub", (self.loops[shift].count, integer(1))) for index, shift in self.shifts.items()}
        reads = [self.prepared(read) for read in self.reads]
        with b.inside() as binds:
            total = self.sum(self.summed, reads, f.Const(0.0, self.added.value.ty))
        body = block_of(binds, (total,))
        array = f.Arr(self.added.value.ty, len(space))
        made = b.one(f.Par(tuple(space), body, (f.Out("keep"),)), array, "sums")
        return self.enlarged(made, [count for _, count in space])

    def extent(self, index: str) -> f.Atom:
        """How many places there are."""
        count = self.loops[index].count
        if index not in self.shifts:
            return count
        more = self.b.op("sub", (self.loops[self.shifts[index]].count, integer(1)))
        return self.b.op("max", (self.b.op("add", (count, more)), integer(0)))

    def prepared(self, read: Read) -> Read:
        """A read of an array that is padded, and turned so that what the last places read lies side by side."""
        for k, total in enumerate(read.at):
            index = next(iter(total), None)
            if total == {index: 1} and index in self.shifts:
                read = replace(read, array=self.padded(read.array, k, str(index)))
        last = {self.solved[-1]: 1}
        mine = [k for k, total in enumerate(read.at) if self.solved[-1] in total]
        if len(mine) != 1 or read.at[mine[0]] != last or mine[0] == len(read.at) - 1:
            return read
        if set(self.solved) <= read.mentions():
            return read
        order = [*[k for k in range(len(read.at)) if k != mine[0]], mine[0]]
        return Read(read.var, self.turned(read.array, order), tuple([read.at[k] for k in order]))

    def padded(self, array: f.Var, k: int, index: str) -> f.Var:
        """An array with zeros before and after it in dimension k."""
        b, pad, count = self.b, self.pads[index], self.loops[index].count
        indices = [b.var("i", f.I64) for _ in range(rank_of(array.ty))]
        counts: list[f.Atom] = [b.op("dim", (array,), k=i) for i in range(len(indices))]
        counts[k] = b.op("max", (b.op("add", (count, b.op("mul", (integer(2), pad)))), integer(0)))
        with b.inside() as binds:
            at = b.op("sub", (indices[k], pad))
            inside = b.op("and", (b.op("ge", (at, integer(0))), b.op("lt", (at, count))))
            with b.inside() as there:
                given = [at if i == k else other for i, other in enumerate(indices)]
                x = b.op("index", (array, *given), unchecked=True)
            zero = f.Const(0.0, x.ty)
            value = b.one(f.If(inside, block_of(there, (x,)), f.Block((), (zero,))), x.ty, "padded")
        space = tuple(zip(indices, counts, strict=True))
        return b.one(f.Par(space, block_of(binds, (value,)), (f.Out("keep"),)), array.ty, "padded")

    def turned(self, array: f.Var, order: list[int]) -> f.Var:
        """An array with its dimensions in another order."""
        b = self.b
        indices = [b.var("i", f.I64) for _ in order]
        counts = [b.op("dim", (array,), k=k) for k in order]
        with b.inside() as binds:
            at = [indices[order.index(k)] for k in range(len(order))]
            x = b.op("index", (array, *at), unchecked=True)
        space = tuple(zip(indices, counts, strict=True))
        return b.one(f.Par(space, block_of(binds, (x,)), (f.Out("keep"),)), array.ty, "turned")

    def sum(self, loops: list[Loop], reads: list[Read], start: f.Atom) -> f.Atom:
        """The sum over these loops, in order."""
        b = self.b
        if not loops:
            return b.op("acc_add", (start, self.value(reads)))
        (loop, *rest), state = loops, b.var("sum", start.ty)
        index = b.var(loop.index.name, f.I64)
        self.atoms[loop.index.name] = index
        with b.inside() as binds:
            after = self.sum(rest, reads, state)
        return b.one(f.For(index, loop.count, (state,), (start,), block_of(binds, (after,))), start.ty, "sum")

    def value(self, reads: list[Read]) -> f.Atom:
        b, known = self.b, dict[str, f.Atom]()
        for before, read in zip(self.reads, reads, strict=True):
            at = [self.index(total) for total in read.at]
            known[before.var.name] = b.op("index", (read.array, *at), unchecked=True)
        for var, op in self.code:
            args = [known.get(a.name, a) if isinstance(a, f.Var) else a for a in op.args]
            known[var.name] = b.one(replace(op, args=tuple(args)), var.ty, var.name)
        value = self.added.value
        return known.get(value.name, value) if isinstance(value, f.Var) else value

    def index(self, total: Sum) -> f.Atom:
        """A sum of indices of the nest, with what stands for these."""
        b, first = self.b, next(iter(total), None)
        if total == {first: 1} and first in self.shifts:
            other = self.atoms[self.shifts[str(first)]]
            return b.op("sub", (b.op("add", (self.atoms[first], self.pads[str(first)])), other))
        place = [index for index, shift in self.shifts.items() if total == {index: 1, shift: 1}]
        if place:
            return self.atoms[place[0]]
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
        b, wanted = self.b, self.added.dims
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
        space = tuple(zip(indices, self.added.dims, strict=True))
        return b.one(f.Par(space, block_of(binds, (value,)), (f.Out("keep"),)), made.ty, "sums")
