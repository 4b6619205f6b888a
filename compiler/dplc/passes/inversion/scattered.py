"""What the points of a nest add, and where: what `invert.py` makes sums of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined
from dplc.flat.conditions import Conditions
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside, every, names, rhs_mentions
from dplc.passes.inversion.zeros import gives_zero
from dplc.passes.simplify.purity import droppable

MOST = 16  # operations of a point, which is computed again for each of its places
MANY = 1 << 32  # steps


Guard = tuple[f.Atom, bool]  # a condition, and whether it holds


@node
class Loop:
    index: f.Var
    count: f.Atom


@node
class Added:
    """An addition at places of an accumulator; `loops` and `guards` are around it."""

    loops: tuple[Loop, ...]
    guards: tuple[Guard, ...]
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

    def apart(self) -> set[object]:
        """The indices that alone tell a place of the array."""
        return {term for total in self.at if len(total) == 1 for term in total}


class Alike(Protocol):
    """What is added, and can be added in one nest with others that are like it."""

    def is_like(self, other: Any) -> bool: ...


Part = TypeVar("Part", bound=Alike)


def together(parts: Iterable[Part]) -> list[list[Part]]:
    """In groups of those that are like each other."""
    groups: list[list[Part]] = []
    for one in parts:
        group = next((group for group in groups if group[0].is_like(one)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return groups


class Unfit(Exception):
    """A nest cannot be inverted."""


class Points:
    """A nest: what its points compute, and what they add to each of its accumulators."""

    def __init__(self, par: f.Par, affine: Affine) -> None:
        self.affine = affine
        self.defined: dict[str, f.Rhs] = {}
        self.rows: dict[str, tuple[f.Var, tuple[f.Atom, ...]]] = {}  # parts of arrays from outside
        self.kept: dict[str, tuple[f.Atom, Loop, f.Atom]] = {}  # by inner Pars: an element, its index, a length
        self.opaque: set[str] = set()  # what cannot be computed again alone
        self.added: dict[int, list[Added]] = {}
        self.used = set(rhs_mentions(par))
        self.inside = {var.name for var in bound_inside(par)}
        self.conditions = Conditions(affine)
        self.guarded: set[str] = set()  # what is read under conditions
        self.walk(par, {out.acc.name: k for k, out in enumerate(par.outs) if out.acc}, (), ())

    def walk(self, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]) -> None:
        """Walks a Par; `accs` are the names of accumulators in its body."""
        loops = (*loops, *[Loop(*dimension) for dimension in par.space])
        self.affine.loops(par)
        if not self.inside.isdisjoint(names([loop.count for loop in loops])):
            raise Unfit  # of a triangle: an index of the nest is a count, too
        self.block(par.body, accs, loops, guards)

    def block(
        self, block: f.Block, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]
    ) -> dict[str, int]:  # fmt: skip
        """The accumulators after a block, by their names."""
        for bind in block.binds:
            held = [accs[name] for name in rhs_mentions(bind.rhs) if name in accs]
            self.conditions.define(bind)
            match bind.rhs:
                case f.Par() as inner if not inner.ordered:
                    self.inner(bind, inner, accs, loops, guards)
                case f.If() as branch if held:
                    accs = accs | self.branch(bind, branch, accs, loops, guards)
                case f.Op("acc_index", (acc, value, *rest)) as op if len(held) == 1 and is_in(acc, accs):
                    rank = rank_of(acc.ty)
                    if op.attr("rank") != rank or len(rest) != 2 * rank or not isinstance(value.ty, f.Num):
                        raise Unfit
                    self.add(held[0], Added(loops, guards, value, tuple(rest[:rank]), tuple(rest[rank:])))
                    accs = accs | {bind.vars[0].name: held[0]}
                case f.Op("acc_add", (acc, f.Var(name))) if len(held) == 1 and is_in(acc, accs) and name in self.kept:
                    value, own, length = self.kept[name]
                    self.add(held[0], Added((*loops, own), guards, value, (length,), (own.index,)))
                    accs = accs | {bind.vars[0].name: held[0]}
                case f.Op("acc_extend", (f.Var(short), length)) if short in self.kept and not held:
                    value, own, _ = self.kept[short]
                    self.kept[bind.vars[0].name] = value, own, length
                    self.opaque.add(bind.vars[0].name)
                case f.Op() if not held and droppable(bind.rhs):
                    self.plain(bind, bind.rhs)
                    self.guarded |= {bind.vars[0].name} if guards else set()
                case f.Op("fill") if bind.vars[0].name not in self.used:
                    pass
                case rhs if not held and droppable(rhs):
                    self.opaque.update(var.name for var in bind.vars)
                    for inner in every(f.Block((bind,), ())):
                        self.affine.define(inner)
                        self.conditions.define(inner)
                case _:
                    raise Unfit
        return accs

    def branch(
        self, bind: f.Bind, branch: f.If, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]
    ) -> dict[str, int]:  # fmt: skip
        """The accumulators that a branch gives; its other results are not computed again."""
        after = [self.block(arm, accs, loops, (*guards, (branch.cond, truth)))
                 for arm, truth in ((branch.then, True), (branch.else_, False))]  # fmt: skip
        made = dict[str, int]()
        for var, *given in zip(bind.vars, branch.then.results, branch.else_.results, strict=True):
            held = {known.get(atom.name) if isinstance(atom, f.Var) else None
                    for atom, known in zip(given, after, strict=True)}  # fmt: skip
            if len(held) > 1:
                raise Unfit
            if (number := held.pop()) is None:
                self.opaque.add(var.name)
            else:
                made[var.name] = number
        return made

    def inner(
        self, bind: f.Bind, par: f.Par, accs: dict[str, int], loops: tuple[Loop, ...], guards: tuple[Guard, ...]
    ) -> None:
        names = dict[str, int]()
        for var, out, x in zip(bind.vars, par.outs, par.body.results, strict=True):
            match out:
                case f.Out("add", _, f.Var(name), f.Var() as acc) if name in accs:
                    names[acc.name] = accs[var.name] = accs[name]
                case f.Out("keep") if len(par.space) == 1 and isinstance(x.ty, f.Num):
                    self.kept[var.name] = x, Loop(*par.space[0]), par.space[0][1]
                    self.opaque.add(var.name)
                case f.Out("add"):
                    raise Unfit
                case _:
                    self.opaque.add(var.name)
        self.walk(par, names, loops, guards)

    def add(self, k: int, added: Added) -> None:
        self.added.setdefault(k, []).append(added)

    def plain(self, bind: f.Bind, op: f.Op) -> None:
        self.affine.define(bind)
        self.defined[bind.vars[0].name] = op
        if op.op == "index" and isinstance(op.args[0], f.Var):
            array, before = self.rows.get(op.args[0].name, (op.args[0], ()))
            self.rows[bind.vars[0].name] = array, (*before, *op.args[1:])


def is_in(atom: f.Atom | None, names: Iterable[str]) -> bool:
    """True for a variable with one of these names."""
    return isinstance(atom, f.Var) and atom.name in names


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
