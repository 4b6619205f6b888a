"""Fission of innermost loops that add at places which their points find: what is added is computed first.

    c', s = par j < m to add (c), fold 0 {        x, k, s = par j < m to keep, keep, fold 0 {
      p = cast to=i64 (mul a j)                     p = cast to=i64 (mul a j); q = ge p 0
      q = ge p 0                                    x, k = if q { ...; yield v, p }
      c1 = if q { ...; acc_index c v n p }   =>                 else { yield 0.0, -1 }
                else { yield c }                    yield x, k, w }
      yield c1, w }                               c' = par j < m to add (c) {
                                                    x = index x j; k = index k j; q = ge k 0
                                                    c1 = if q { acc_index c x n k } else { yield c }
                                                    yield c1 }

Such are images that are warped, and delays between samples.  No two vectors may add to such places at once, as they may
be one; so the first loop has vectors, with masks in place of branches, and the second one little to do.  The additions
keep their order.  What is kept is as long as a row of a nest, or a block of a sum: it stays in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from dpl.node import node, record, replace
from dpl.prims import elementary
from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.dims import dims_of
from dplc.flat.nans import OF_GUARD, guards
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside, every, is_in, names, rhs_mentions, with_body
from dplc.passes.inversion.nests import Unfit, with_nests
from dplc.passes.simplify.dead_code import drop_unused

NOWHERE = -1  # the place of a point that adds nothing
WORK = 2  # operations of a point, at least, for each number that is kept: it is written, and read again


def additions_last(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function, with two loops in place of each that adds such, where this pays."""
    pars = [bind.rhs for bind in every(fn.body) if isinstance(bind.rhs, f.Par)]
    if not any(out.acc for par in pars for out in par.outs):
        return fn
    affine = Affine(dims_of(fn.body))
    handed = {out.acc.name for par in pars for out in par.outs if out.acc}  # by a nest to its rows

    def parted(bind: f.Bind, par: f.Par | f.For) -> list[f.Bind] | None:
        if isinstance(par, f.For) or par.ordered or len(par.space) > 1 or not any(out.acc for out in par.outs):
            return None
        if has_loops(par.body) or not (is_short(par) or any(is_in(out.target, handed) for out in par.outs)):
            return None
        for one in every(par.body):
            affine.define(one)
        try:
            return _Fission(par, affine, supply, {var.name for var in bound_inside(par)}).parts(bind)
        except Unfit:
            return None

    return with_body(fn, with_nests(fn.body, affine, parted))


def is_short(par: f.Par) -> bool:
    """True for a loop of few steps."""
    ((_, count),) = par.space
    return isinstance(count, f.Const) and isinstance(count.value, int) and count.value <= BLOCK


def found(par: f.Par) -> set[str]:
    """The whole numbers that points make of floats or read; remainders, too, if vectors of elementary functions are to
    be had.  Others, such as places on a ring, lie side by side mostly, and have lanes of their own."""
    functions = any(isinstance(one.rhs, f.Op) and one.rhs.op in elementary.NAMES for one in every(par.body))
    made, before = set[str](), -1
    while len(made) > before:  # results of a branch come before what its arms compute
        before = len(made)
        for bind in every(par.body):
            match bind.rhs:
                case f.If(_, then, other):
                    both = zip(bind.vars, then.results, other.results, strict=True)
                    made.update([var.name for var, *arms in both if any(is_in(x, made) for x in arms)])
                case f.Op(op, args) if bind.vars and bind.vars[0].ty == f.I64:
                    remainder = functions and op == "mod" and not bind.rhs.attr("ring")
                    if op == "index" or remainder or any(f.is_float(a.ty) or is_in(a, made) for a in args):
                        made.add(bind.vars[0].name)
                case _:
                    pass
    return made


def has_loops(body: f.Block) -> bool:
    """True for what is no step of vectors."""
    return any(not isinstance(one.rhs, f.Op | f.If) for one in every(body))


Place = tuple[f.Atom, int]  # a number, and what is added to it


@node
class Addition:
    """What is added to accumulator number `k`, and where; `there` is a number below 0 where nothing is."""

    k: int
    op: f.Op
    value: f.Atom
    places: tuple[Place, ...]
    there: f.Atom | None = None


@record
class _Fission:
    par: f.Par
    affine: Affine
    supply: f.Supply
    inside: set[str]

    def parts(self, bind: f.Bind) -> list[f.Bind]:
        par = self.par
        accs = {out.acc.name: k for k, out in enumerate(par.outs) if out.acc is not None}
        binds, added = self.without(par.body.binds, accs)
        kept, places = self.kept(added), found(self.par)
        if not any(is_in(self.root(at)[0], places) for one in added for at in one.op.args[2 + len(one.places) :]):
            raise Unfit
        rest = [k for k, out in enumerate(par.outs) if out.acc is None]
        body = f.Block(tuple(binds), (*[par.body.results[k] for k in rest], *kept))
        arrays = [f.Var(self.supply.fresh(var.name), f.Arr(var.ty, 1)) for var in kept]
        outs = (*[par.outs[k] for k in rest], *[f.Out("keep")] * len(kept))
        first = f.Bind((*[bind.vars[k] for k in rest], *arrays), replace(par, body=body, outs=outs))
        (first,) = drop_unused(f.Block((first,), first.vars)).binds
        if work(first.rhs) < WORK * len(kept):
            raise Unfit
        return [first, self.second(bind, added, dict(zip(kept, arrays, strict=True)))]

    def kept(self, added: Sequence[Addition]) -> list[f.Var]:
        """The numbers of a point that its additions need."""
        ((index, _),) = self.par.space
        needed = [atom for one in added for atom in (one.value, *[at for at, _ in one.places], one.there)]
        kept = dict.fromkeys([atom for atom in needed if isinstance(atom, f.Var) and atom.name in self.inside])
        if any(not isinstance(var.ty, f.Num) for var in kept):
            raise Unfit
        return [var for var in kept if var != index]

    def root(self, place: f.Atom) -> Place:
        """The number that a place is, and the constant beside it."""
        total = self.affine.sum(place)
        terms = [term for term in total if term != ONE]
        if len(terms) == 1 and isinstance(terms[0], str) and total[terms[0]] == 1:
            return f.Var(terms[0], f.I64), total.get(ONE, 0)
        return place, 0

    # ---- the first loop

    def without(self, binds: Sequence[f.Bind], accs: dict[str, int]) -> tuple[list[f.Bind], list[Addition]]:
        """Bindings without their additions, and these.  `accs` has the names of accumulators, and grows."""
        made, added = list[f.Bind](), list[Addition]()
        for bind in binds:
            held = [name for name in rhs_mentions(bind.rhs) if name in accs]
            match bind.rhs:
                case f.If() as branch if held:
                    rest, more = self.branch(bind, branch, accs)
                    made.append(rest)
                    added += more
                case f.Op("acc_index", (acc, value, *rest)) as op if len(held) == 1 and is_in(acc, accs.keys()):
                    rank = rank_of(acc.ty)
                    if op.attr("rank") != rank or not isinstance(value.ty, f.Num) or self.binds_any(rest[:rank]):
                        raise Unfit
                    added.append(Addition(accs[held[0]], op, value, tuple(map(self.root, rest[rank:]))))
                    accs[bind.vars[0].name] = accs[held[0]]
                case _ if held:
                    raise Unfit
                case _:
                    made.append(bind)
        return made, added

    def binds_any(self, atoms: Sequence[f.Atom]) -> bool:
        return not self.inside.isdisjoint(names(tuple(atoms)))

    def branch(self, bind: f.Bind, branch: f.If, accs: dict[str, int]) -> tuple[f.Bind, list[Addition]]:
        """A branch without its additions; it gives what they need instead."""
        known = dict(accs)
        arms = [_Arm(*self.without(block.binds, known), block) for block in (branch.then, branch.else_)]
        variables, results = list[f.Var](), ([*branch.then.results], [*branch.else_.results])
        for k in reversed(range(len(bind.vars))):
            x = branch.then.results[k]
            if isinstance(x, f.Var) and x.name in known:
                accs[bind.vars[k].name] = known[x.name]
                del results[0][k], results[1][k]
            else:
                variables.insert(0, bind.vars[k])
        added = list[Addition]()
        for at, arm in enumerate(arms):
            given = dict[tuple[f.Atom, f.Atom], f.Var]()

            def after(atom: f.Atom, other: f.Atom, at: int = at, given: dict = given) -> f.Var:
                """What is an atom after this arm, and another one after the other arm."""
                if (atom, other) not in given:
                    given[atom, other] = var = f.Var(self.supply.fresh("added"), atom.ty)
                    self.inside.add(var.name)
                    variables.append(var)
                    results[at].append(atom)
                    results[1 - at].append(other)
                return given[atom, other]

            for one in arm.added:
                there = after(arm.there() if one.there is None else one.there, integer(NOWHERE))
                value = after(one.value, f.Const(0.0, one.value.ty))
                places = tuple([(after(at, integer(0)) if is_in(at, arm.names) else at, n) for at, n in one.places])
                added.append(Addition(one.k, one.op, value, places, there))
        blocks = [f.Block(tuple(arm.binds), tuple(own)) for arm, own in zip(arms, results, strict=True)]
        return f.Bind(tuple(variables), f.If(branch.cond, *blocks)), added

    # ---- the second loop

    def second(self, bind: f.Bind, added: Sequence[Addition], arrays: dict[f.Var, f.Var]) -> f.Bind:
        """The additions, in their order; those under one condition are one branch."""
        b, (index, count) = Builder(self.supply), self.par.space[0]
        mine = [k for k, out in enumerate(self.par.outs) if out.acc is not None]
        accs: dict[int, f.Var] = {k: b.var("c", bind.vars[k].ty) for k in mine}
        outs = tuple([replace(self.par.outs[k], acc=accs[k]) for k in mine])
        point = _Point(b, index, b.var(index.name, f.I64), arrays, accs)
        with b.inside() as binds:
            for there, group in groupby(added, lambda one: one.there):
                point.add(list(group), there)
        body = block_of(binds, [accs[k] for k in mine])
        return f.Bind(tuple([bind.vars[k] for k in mine]), f.Par(((point.own, count),), body, outs, self.par.span))


@record
class _Point:
    """A point of the second loop: its own index in place of another one, and the numbers that were kept for it."""

    b: Builder
    index: f.Var
    own: f.Var
    arrays: dict[f.Var, f.Var]
    accs: dict[int, f.Var]

    def add(self, group: Sequence[Addition], there: f.Atom | None) -> None:
        """Adds what is `there`."""
        if there is None:
            self.each(group)
            return
        b, before = self.b, dict(self.accs)
        some = b.op("ge", (self.number({}, there), integer(0)))
        with b.inside() as binds:
            self.each(group)
        changed = [k for k, acc in self.accs.items() if acc != before[k]]
        arms = block_of(binds, [self.accs[k] for k in changed]), f.Block((), tuple([before[k] for k in changed]))
        after = b.bind(f.If(some, *arms), [before[k].ty for k in changed], "c")
        self.accs.update(zip(changed, after, strict=True))

    def each(self, group: Sequence[Addition]) -> None:
        b, known = self.b, dict[f.Atom, f.Atom]()
        for one in group:
            at = [(self.number(known, place), more) for place, more in one.places]
            places = [b.op("add", (place, integer(more))) if more else place for place, more in at]
            args = (self.accs[one.k], self.number(known, one.value), *one.op.args[2 : 2 + len(places)], *places)
            self.accs[one.k] = b.one(replace(one.op, args=args), self.accs[one.k].ty, "c")

    def number(self, known: dict[f.Atom, f.Atom], atom: f.Atom) -> f.Atom:
        """A number of the first loop; those that were read are `known`."""
        if atom not in known:
            array = self.arrays.get(atom) if isinstance(atom, f.Var) else None
            known[atom] = atom if array is None else self.b.op("index", (array, self.own), unchecked=True)
        return self.own if atom == self.index else known[atom]


@node
class _Arm:
    """An arm of a branch: what it computes, without what it adds."""

    binds: list[f.Bind]
    added: list[Addition]
    block: f.Block

    @property
    def names(self) -> set[str]:
        return {var.name for bind in every(self.block) for var in bind.vars} | {
            name for bind in self.binds for name in names(bind.vars)
        }

    def there(self) -> f.Atom:
        """A place of what the arm adds under no other condition, which is never below 0."""
        own = [one for one in self.added if one.there is None]
        sure = [at for one in own for at, more in one.places if more == 0]
        return sure[0] if sure else own[0].op.args[-1]


def work(rhs: f.Rhs) -> int:
    """How many operations of arithmetic a point is, without guards against NaN."""
    assert isinstance(rhs, f.Par)
    ops = {bind.vars[0].name: bind.rhs for bind in every(rhs.body) if isinstance(bind.rhs, f.Op) and bind.vars}
    return sum(OPS[op.op].elementwise for op in ops.values()) - OF_GUARD * len(guards(ops))
