"""Reads in a nest of loops are checked once, before the nest, if nothing else in it can fail.

    par i < n {                                  if dim a - n - 1 < 0 || dim b - m < 0 {
      k = add i 1                                  par i < n { k = add i 1; par j < m {
      par j < m {                                    if i = j { } else { index a k; index b j } } } }    fails as before
        if i = j { 0.0 }                   =>    par i < n {
        else { x = index a k                       k = add i 1
               y = index b j; ... } } }            par j < m {
                                                     if i = j { 0.0 } else { x = index unchecked a k; ... } } }

Indices must be sums of the indices of loops, and numbers from outside; so the least and the greatest one are known.
Points without checks are vectorised, and joined with others.  Where a read may be out of bounds, the part of the nest
that can fail is run on its own, and the nest if that has not failed: a condition may protect a read.  Of a loop
that only checks, as what is left of a forward sweep, the checks before it are all.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import LARGEST, ONE, Affine, Sum, combined
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.conditions import Conditions
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, blocks, bound_inside, every, names, used, with_binds, with_blocks, with_rhs
from dplc.flat.written_sums import written
from dplc.narrow import expect_type
from dplc.passes.inversion.nests import with_nests
from dplc.passes.parallel.found_places import Found, Loop, Search, is_much, outside, searches
from dplc.passes.simplify.purity import HERE, droppable


def checked_before(supply: f.Supply, body: f.Block) -> f.Block:
    """The body of a function, with the checks of its Pars before them."""
    if not any(isinstance(bind.rhs, f.Par) or only_checks(bind.rhs) for bind in every(body)):
        return body
    checks = _Checks(supply, body)
    return with_nests(body, checks.affine, checks.checked)


def is_checked(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and rhs.op in ("index", "slice") and not rhs.attr("unchecked")


def only_checks(rhs: f.Rhs) -> bool:
    """True for a loop that does nothing else than checks of reads."""
    return isinstance(rhs, f.For) and not rhs.state and not rhs.collect and droppable(with_blocks(rhs, unchecked))


def is_own(rhs: f.Rhs, own: f.Var, inside: set[str]) -> bool:
    """True for a read of a vector from outside at the own point."""
    match rhs:
        case f.Op("index", (f.Var(name, f.Arr(_, 1)), at)):
            return at == own and name not in inside
        case _:
            return False


class _Checks:
    def __init__(self, supply: f.Supply, body: f.Block) -> None:
        self.supply = supply
        self.affine = Affine(dims_of(body))

    def checked(self, bind: f.Bind, loop: f.Par | f.For) -> list[f.Bind] | None:
        """A Par after the checks of its reads, or the checks of a loop that does nothing else; None if there are none,
        or they cannot be done before it."""
        if isinstance(loop, f.For) and not only_checks(loop):
            return None
        par = loop if isinstance(loop, f.Par) else f.Par(((loop.index, loop.count),), loop.body, ())
        reads = [inner for inner in every(par.body) if is_checked(inner.rhs)]
        if par.ordered or not reads:
            return None
        alike, par = self.alike(par)
        counts, before = dict(self.affine.counts), len(self.affine.facts)
        inside = {var.name for var in bound_inside(par)}
        ranges = _Ranges(self.affine, inside)
        fine = ranges.can_be_checked(par)
        self.affine.counts = counts
        del self.affine.facts[before:]  # those are about numbers of the points
        if not fine:
            return None
        b, own, here = Builder(self.supply), par.space[0][0], set(map(id, par.body.binds))
        b.binds += alike
        if len(par.space) == 1 and all(id(read) in here and is_own(read.rhs, own, inside) for read in reads):
            bad, part = self.at_least_length(b, par.space[0][1], reads)
        else:
            bad, part = ranges.failing(b), f.Block((alone(par if isinstance(loop, f.Par) else loop),), ())
            if accumulators(par) & set(names(used(part))):
                return None
            if ranges.found:
                before_points = searches(par, ranges.found, inside) if is_much(par) else None
                if before_points is None:
                    return None
                bad = self.or_found(b, bad, par, before_points)
        if bad is not None:
            b.binds.append(f.Bind((), f.If(bad, Copier(self.supply, {}).block(part), f.Block((), ()))))
        after = [f.Bind(bind.vars, with_blocks(par, unchecked))] if isinstance(loop, f.Par) else []
        return [*block_of(b.binds, ()).binds, *after]

    def alike(self, par: f.Par) -> tuple[list[f.Bind], f.Par]:
        """What reads whole numbers in the same places in all points, as these may be indices; and a Par without that.
        There must be points: else the places may not be there."""
        if not all(isinstance(n, f.Const) and isinstance(n.value, int) and n.value > 0 for _, n in par.space):
            return [], par
        inside = {var.name for var in bound_inside(par)}
        found: list[f.Bind] = []
        for bind in par.body.binds:
            if bind.vars and bind.vars[0].ty == f.I64 and isinstance(bind.rhs, f.Op) and bind.rhs.op == "index":
                if bind.rhs.attr("unchecked") is True and inside.isdisjoint(names(bind.rhs.args)):
                    found.append(bind)
                    self.affine.define(bind)
        if not found:
            return [], par
        rest = [bind for bind in par.body.binds if not any(bind is one for one in found)]
        return found, replace(par, body=with_binds(par.body, rest))

    def or_found(self, b: Builder, bad: f.Atom | None, par: f.Par, found: Sequence[Search]) -> f.Atom:
        """Whether a read may fail by the other checks or, if it does not, at a place that points find."""
        found = [replace(search, code=unchecked(f.Block(search.code, ())).binds) for search in found]
        if bad is None:
            return outside(b, par, found)
        with b.inside() as binds:
            failing = outside(b, par, found)
        return b.one(f.If(bad, f.Block((), (f.Const(True, f.BOOL),)), block_of(binds, (failing,))), f.BOOL)

    def at_least_length(self, b: Builder, count: f.Atom, reads: list[f.Bind]) -> tuple[f.Atom, f.Block]:
        """Whether a read at the own point fails, and all reads at the first point where one does."""
        least = count
        for read in reads:
            least = b.op("min", (least, b.op("dim", atoms(read.rhs)[:1], k=0)))
        failing = [
            replace(read, rhs=replace(expect_type(f.Op, read.rhs), args=(atoms(read.rhs)[0], least))) for read in reads
        ]
        return b.op("lt", (least, count)), f.Block(tuple(failing), ())


class _Ranges:
    """The least and greatest indices of a Par's reads.  `inside` are the variables of its points."""

    def __init__(self, affine: Affine, inside: set[str]) -> None:
        self.affine = affine
        self.conditions = Conditions(affine)
        self.inside = inside
        self.natural: list[Sum] = []  # sums that must be 0 or greater
        self.lengths: set[str] = set()  # numbers that are lengths of arrays
        self.rows: set[str] = set()  # arrays of the points that are parts of others
        self.around: list[Loop | None] = []  # loops of the nest around a binding; None for what may not be done
        self.found: list[Found] = []  # reads at places that the points of the whole Par find

    def can_be_checked(self, par: f.Par) -> bool:
        if par.ordered or not all(map(self.is_known, [term for _, n in par.space for term in self.affine.sum(n)])):
            return False
        self.affine.loops(par)
        return self.all_fit(par.body, par.space)

    def all_fit(self, block: f.Block, around: Sequence[Loop] | None = None) -> bool:
        """True if no binding of a block can fail after the checks.  `around` are the loops whose body it is, if it is
        that of loops."""
        before = len(self.around)
        self.around += [None] if around is None else [loop if self.outside(loop[1]) else None for loop in around]
        fine = all(map(self.fits, block.binds))
        del self.around[before:]
        return fine

    def outside(self, atom: f.Atom) -> bool:
        return isinstance(atom, f.Const) or atom.name not in self.inside

    def fits(self, bind: f.Bind) -> bool:
        """True if a binding cannot fail after the checks."""
        self.conditions.define(bind)
        match bind.rhs:
            case f.Op("index" | "slice") as op if is_checked(op) or isinstance(bind.vars[0].ty, f.Arr):
                self.rows.add(bind.vars[0].name)
                return not is_checked(op) or (self.read(op) if op.op == "index" else self.part(op))
            case f.Op() | f.Call() as rhs:
                self.affine.define(bind)
                return droppable(rhs) or self.finds_some(rhs)
            case f.Par() as par:
                return self.can_be_checked(par)
            case f.If(condition, then, other):
                return self.where(condition, True, then) and self.where(condition, False, other)
            case f.For(index, count) as loop if self.outside(count):
                self.affine.loop(index, count)
                return self.all_fit(loop.body, ((index, count),))
            case rhs:
                return all(map(self.all_fit, blocks(rhs)))

    def finds_some(self, rhs: f.Rhs) -> bool:
        """True for a search in an array that has elements."""
        if not (isinstance(rhs, f.Op) and OPS[rhs.op].finds):
            return False
        length = self.affine.dims.of(rhs.args[0], 0)
        return isinstance(length, f.Const) and isinstance(length.value, int) and length.value > 0

    def where(self, condition: f.Atom, truth: bool, block: f.Block) -> bool:
        """Whether the bindings of a block fit, which runs where a condition is true or false."""
        before = len(self.affine.facts)
        self.conditions.assume(condition, truth)
        fine = self.all_fit(block)
        del self.affine.facts[before:]
        return fine

    def read(self, op: f.Op) -> bool:
        """Notes what must hold for a read; False if that is not known before the nest, or never holds."""
        array, *indices = op.args
        if not isinstance(array, f.Var) or (array.name in self.inside and array.name not in self.rows):
            return False
        for k, index in enumerate(indices[: len(indices) - op.attr("sure", 0)]):
            dim = self.affine.dims.of(array, k)
            length, at = self.affine.length(dim), self.affine.sum(index)
            if length is None:
                return False
            if isinstance(dim, f.Var):
                self.lengths.add(dim.name)
            loops = [loop for loop in self.around if loop is not None]
            if len(loops) == len(self.around) and array.name not in self.inside and not self.tells(at):
                self.found.append(Found(op, index, array, k, at, tuple(loops)))
            elif not self.holds(at, combined(length, combined(at, {ONE: 1}, 1), -1)):
                return False
        return True

    def tells(self, at: Sum) -> bool:
        """True for a place that is known by the indices of loops."""
        return all(term in self.affine.counts or self.is_known(term) for term in at)

    def part(self, op: f.Op) -> bool:
        """As `read`, for a slice of an array from outside, or of its row; the ends must be constants."""
        array, low, high = op.args
        if not isinstance(array, f.Var) or (array.name in self.inside and array.name not in self.rows):
            return False
        length = self.affine.length(self.affine.dims.of(array, 0))
        if length is None or not (isinstance(low, f.Const) and isinstance(high, f.Const)):
            return False
        low, high = self.affine.sum(low), self.affine.sum(high)
        return self.holds(low, combined(high, low, -1), combined(length, high, -1))

    def holds(self, *totals: Sum) -> bool:
        """Notes that sums must be natural; False if that is not known before the nest, or never holds."""
        for total in totals:
            least = self.least(total)
            if least is None:
                return False
            if not self.affine.is_natural(least):
                self.natural.append(least)
        return True

    def least(self, total: Sum) -> Sum | None:
        """The least value of a sum, as far as it is known before the nest: by the ranges of indices, or by what holds
        here.  None if there is none that may be natural."""
        best: Sum | None = None
        for fact in self.affine.known():
            least = self.affine.least(combined(total, fact, -1))
            if not all(map(self.is_known, least)) or (set(least) == {ONE} and least[ONE] < 0):
                continue
            if best is None or self.affine.is_natural(combined(least, best, -1)):
                best = least
        return best

    def is_known(self, term: object) -> bool:
        return (term[0] if isinstance(term, tuple) else term) not in self.inside

    # ---- the checks

    def failing(self, b: Builder) -> f.Atom | None:
        """Whether a read may fail, before the Par."""
        found: list[f.Atom] = []
        seen: list[Sum] = []
        large: set[str] = set()
        for total in self.natural:
            if total in seen:
                continue
            seen.append(total)
            large.update(self.may_overflow(total))
            found.append(b.op("lt", (written(b, self.affine, total), integer(0))))
        for name in sorted(large):
            number = f.Var(name, f.I64)
            found += [b.op("gt", (number, integer(LARGEST))), b.op("lt", (number, integer(-LARGEST)))]
        if not found:
            return None
        bad = found[0]
        for other in found[1:]:
            bad = b.op("or", (bad, other))
        return bad

    def may_overflow(self, total: Sum) -> list[str]:
        """The numbers in a sum that must not be large, so that it cannot be natural by overflow.  Lengths are small;
        one number more, without a constant, can only make it negative."""
        numbers = [term for term in total if isinstance(term, str) and term not in self.lengths]
        single = len(numbers) < 2 and all(abs(total[name]) == 1 for name in numbers)
        positive = all(factor > 0 for term, factor in total.items() if term not in (ONE, *numbers))
        fine = single and positive and total.get(ONE, 0) >= -1 + (1 in [total[name] for name in numbers])
        return [] if fine else numbers


def unchecked(block: f.Block) -> f.Block:
    """The block without checks."""
    binds = []
    for bind in block.binds:
        match bind.rhs:
            case f.Op() as op if is_checked(op):
                rhs = replace(op, attrs=(*[a for a in op.attrs if a[0] != "unchecked"], ("unchecked", HERE)))
            case rhs:
                rhs = with_blocks(rhs, unchecked)
        binds.append(with_rhs(bind, rhs))
    return with_binds(block, binds)


# ---- the part of a nest that can fail


def accumulators(par: f.Par) -> set[str]:
    """What the points of a nest add to."""
    inner = [bind.rhs for bind in every(par.body) if isinstance(bind.rhs, f.Par)]
    return {out.acc.name for one in (par, *inner) for out in one.outs if out.acc is not None}


def alone(loop: f.Par | f.For) -> f.Bind:
    """The part of a loop that can fail, in order."""
    body = f.Block(failing(loop.body), ())
    if isinstance(loop, f.For):
        return f.Bind((), replace(loop, body=body))
    return f.Bind((), replace(loop, body=body, outs=(), ordered=True))


def failing(block: f.Block) -> tuple[f.Bind, ...]:
    """The bindings of a block that can fail, with what they need."""
    needed, kept = set[str](), list[f.Bind]()
    for bind in reversed(block.binds):
        if not any(var.name in needed for var in bind.vars):
            if not can_fail(bind.rhs):
                continue
            match bind.rhs:
                case f.Par() as par:
                    bind = alone(par)
                case f.If(cond, then, else_):
                    bind = f.Bind((), f.If(cond, f.Block(failing(then), ()), f.Block(failing(else_), ())))
                case _:
                    pass
        kept.append(bind)
        needed.update(names(used(f.Block((bind,), ()))))
    return tuple(reversed(kept))


def can_fail(rhs: f.Rhs) -> bool:
    """True if there is a check in a right-hand side."""
    inside = (rhs, *(bind.rhs for block in blocks(rhs) for bind in every(block)))
    return any(isinstance(one, f.Op) and OPS[one.op].fails is Fails.BOUNDS and not droppable(one) for one in inside)
