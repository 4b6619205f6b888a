"""Loop interchange: loops that tell no place of an accumulator are summed over inside those that do.

    c' = par i < n to add (c) {                       c' = par d < q to add (c) {
      par d < q to add (c) {                            s, t = for i < n state (s = 0, t = 0) {
        x = index g i; y = index a d i          =>        x = index g i; y = index a d i
        z = mul x y; w = mul x x                          s + mul x y, t + mul x x }
        c1 = acc_index c z q 2 d 0                      c1 = acc_index c s q 2 d 0
        acc_index c1 w q 2 d 1 } }                      acc_index c1 t q 2 d 1 }

This is the gradient of weights whose sums were written out, such as those of a convolution of three by three.  The sums
are in registers then, and the additions few.  It is not done if much would be computed again, or if the sums would read
an array across its rows; those along rows are of vectors.  Where the sums have no points, nothing is added: the places
may not be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine
from dplc.flat.build import Builder, all_hold, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.walk import bound_inside, every, names, rhs_mentions
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.kept_numbers import is_cheap
from dplc.passes.inversion.fission.without_additions import without_additions
from dplc.passes.inversion.forms.conditional import unconditional
from dplc.passes.inversion.forms.own_additions import handed_down, kept_at_own
from dplc.passes.inversion.nests import Loop, Unfit
from dplc.passes.inversion.sites.solved import MOST
from dplc.passes.inversion.sums.alike import together
from dplc.passes.simplify.purity import HERE, droppable, natural

LANES = 8  # numbers that are summed together
LONG = 32  # of a row of which what is left over takes little time


def interchanged(
    bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply, shared: Collection[str]
) -> tuple[set[int], list[f.Bind]]:  # fmt: skip
    """The numbers of the accumulators of a nest that are added to in other nests, and these.  Accumulators of a nest
    around this one are `shared`."""
    ones: list[_Interchange] = []
    with suppress(Unfit):  # other accumulators may have no conditions
        par = unconditional(par, affine, supply)
    for k, var in enumerate(bind.vars):
        try:
            ones.append(_Interchange(par, k, affine, var))
        except Unfit:
            continue
    made = [bind for group in together(ones) for bind in group[0].write(group[1:], supply, shared)]
    return {one.number for one in ones}, made


@node
class Step:
    """A binding of a nest, and the indices of the loops around it."""

    bind: f.Bind
    around: frozenset[str]


class _Interchange:
    """An accumulator of a nest: the loops that tell its places, those that are `summed`, and what both need."""

    def __init__(self, par: f.Par, k: int, affine: Affine, var: f.Var) -> None:
        self.number, self.var = k, var
        chain = handed_down(par, k)
        if chain is None:
            raise Unfit
        levels, self.ops = chain
        self.affine, self.out = affine, par.outs[k]
        self.inside = {var.name for var in bound_inside(par)}
        loops = [Loop(*dimension) for level in levels for dimension in level.par.space]
        self.outside(loop.count for loop in loops)
        accs = {out.acc.name for level in levels for out in level.par.outs if out.acc is not None}
        steps = composed([(level.par, level.chain) for level in levels])
        self.steps = [Step(rest, step.around) for step in steps for rest in without_additions([step.bind], accs)]
        for step in self.steps:
            affine.define(step.bind)
        told = self.told({loop.index.name for loop in loops})
        self.placed = [loop for loop in loops if loop.index.name in told]
        self.summed = [loop for loop in loops if loop.index.name not in told]
        if not self.summed or not told or loops[: len(told)] == self.placed:
            raise Unfit
        self.needed = self.slice()
        self.check(told)

    def outside(self, atoms: Iterable[f.Atom]) -> None:
        if not self.inside.isdisjoint(names(tuple(atoms))):
            raise Unfit

    def told(self, indices: set[str]) -> set[str]:
        """The indices of the loops that tell a place, which must be the same for all."""
        found: list[set[str]] = []
        for op in self.ops:
            rank = op.attr("rank")
            self.outside(op.args[2 : 2 + rank])
            terms = {term for at in op.args[2 + rank :] for term in self.affine.sum(at) if term != ONE}
            if any((term[0] if isinstance(term, tuple) else term) in self.inside - indices for term in terms):
                raise Unfit
            found.append({str(term) for term in terms if term in indices})
        if any(one != found[0] for one in found):
            raise Unfit
        return found[0]

    def slice(self) -> list[Step]:
        """The bindings that the values and places need."""
        wanted = set(names([atom for op in self.ops for atom in op.args[1:]]))
        needed: list[Step] = []
        for step in reversed(self.steps):
            if not wanted.isdisjoint([var.name for var in step.bind.vars]):
                wanted.update(rhs_mentions(step.bind.rhs))
                needed.append(step)
        return needed[::-1]

    def check(self, told: set[str]) -> None:
        """What is done more often than before must be cheap, and nothing may fail: neither what moves nor what goes."""
        again = [step.bind.rhs for step in self.needed if not told <= step.around]
        if len(again) > MOST or not all(map(may_repeat, again)):
            raise Unfit
        for bind in every(f.Block(tuple([step.bind for step in self.needed]), ())):
            if isinstance(op := bind.rhs, f.Op) and (op.attr("unchecked") == HERE or self.is_across(op, told)):
                raise Unfit
        if not all(droppable(step.bind.rhs) for step in self.steps):
            raise Unfit

    def is_across(self, read: f.Op, told: set[str]) -> bool:
        """True if the sums read an array along another dimension than the last one."""
        if read.op != "index":
            return False
        *before, last = [self.affine.sum(at).keys() for at in read.args[1:]]
        summed = {loop.index.name for loop in self.summed}
        return summed.isdisjoint(last) and not told.isdisjoint(last) and any(summed & at for at in before)

    def is_like(self, other: _Interchange) -> bool:
        """True if one nest can have both sums, and computes something of both once."""
        alike = self.placed == other.placed and self.summed == other.summed
        return alike and not self.computed().isdisjoint(other.computed())

    def computed(self) -> set[str]:
        """The names of what needs arithmetic."""
        found = [step.bind for step in self.needed if not (isinstance(op := step.bind.rhs, f.Op) and op.op == "index")]
        return {bind.vars[0].name for bind in found}

    # ---- the code

    def write(self, others: list[_Interchange], supply: f.Supply, shared: Collection[str]) -> list[f.Bind]:
        """The bindings of the accumulators of this and others like it after the nest; their sums are kept if each is
        the only one at its place."""
        ones = [self, *others]
        levels = self.levels({step.bind.vars[0].name for one in ones for step in one.needed})
        ops = [op for one in ones for op in one.ops]
        zeros = tuple([f.Const(0.0, op.args[1].ty) for op in ops])
        sums, found = self.sums(levels[1:], self.summed, zeros, ops, supply)
        totals, body, accs = iter(found), [*levels[0], *sums], list[f.Atom]()
        for one in ones:
            acc = one.out.acc
            assert acc is not None
            for op in one.ops:
                after = f.Var(supply.fresh(acc.name), acc.ty)
                body.append(f.Bind((after,), replace(op, args=(acc, next(totals), *op.args[2:]))))
                acc = after
            accs.append(acc)
        space = tuple([(loop.index, loop.count) for loop in self.placed])
        nest = f.Par(space, f.Block(tuple(body), tuple(accs)), tuple([one.out for one in ones]))
        (made,) = Copier(supply, {}).binds((f.Bind(tuple([one.var for one in ones]), nest),))
        kept = kept_at_own(made, expect_type(f.Par, made.rhs), self.affine, supply, shared)
        return self.where_summed(ones, kept or [made], supply)

    def levels(self, needed: set[str]) -> list[list[f.Bind]]:
        """What is needed, in the outermost loop that has all that it depends on: in the points of a place, or in one of
        the loops of the sums."""
        depth = {loop.index.name: number for number, loop in enumerate(self.summed, 1)}
        levels: list[list[f.Bind]] = [[] for _ in range(len(depth) + 1)]
        for bind in (step.bind for step in self.steps if step.bind.vars and step.bind.vars[0].name in needed):
            level = max((depth.get(name, 0) for name in rhs_mentions(bind.rhs)), default=0)
            depth |= dict.fromkeys([var.name for var in bind.vars], level)
            levels[level].append(bind)
        return levels

    def sums(
        self, levels: list[list[f.Bind]], loops: list[Loop], starts: tuple[f.Atom, ...], ops: list[f.Op],
        supply: f.Supply,
    ) -> tuple[list[f.Bind], tuple[f.Var, ...]]:  # fmt: skip
        """Loops that sum what operations add, with what is in each of them, and the sums; what lies side by side is
        summed by a fold."""

        def fresh() -> tuple[f.Var, ...]:
            return tuple([f.Var(supply.fresh("sum"), start.ty) for start in starts])

        def added(before: tuple[f.Atom, ...], values: Sequence[f.Atom]) -> tuple[list[f.Bind], tuple[f.Var, ...]]:
            after, pairs = fresh(), zip(before, values, strict=True)
            return [f.Bind((x,), f.Op("acc_add", pair)) for x, pair in zip(after, pairs, strict=True)], after

        (level, *inner), (loop, *others), state = levels, loops, fresh()
        alone, values = len(self.summed) == 1, tuple([op.args[1] for op in ops])
        along = in_rows(level, loop) or self.reads_in_branches(level, loop) or (alone and self.lies_along(level, loop))
        if not others and along:
            points = f.Block(tuple(level), values)
            fold = f.Bind(fresh(), f.Par(((loop.index, loop.count),), points, (f.Out("fold"),) * len(ops)))
            if alone:
                return [fold], fold.vars
            adds, after = added(starts, fold.vars)
            return [fold, *adds], after
        steps, after = self.sums(inner, others, state, ops, supply) if others else added(state, values)
        block = f.Block((*level, *steps), after)
        made = f.Bind(fresh(), f.For(loop.index, loop.count, state, starts, block))
        return [made], made.vars

    def lies_along(self, level: Sequence[f.Bind], loop: Loop) -> bool:
        """True if the steps of a loop read numbers that lie side by side, and places do not: then lanes are steps."""
        own, places, found = loop.index.name, {loop.index.name for loop in self.placed}, False
        for op in (bind.rhs for bind in level if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index"):
            *before, last = [self.affine.sum(at).keys() for at in op.args[1:]]
            if own not in last or any(own in at for at in before):
                return False
            found = found or any(not places.isdisjoint(at) for at in before)
        return found and all(isinstance(bind.rhs, f.Op) for bind in level)

    def reads_in_branches(self, level: Sequence[f.Bind], loop: Loop) -> bool:
        """True if steps read under conditions what lies side by side: vectors have masks for that, lanes have none."""
        own = loop.index.name
        found = [bind.rhs for branch in level if isinstance(branch.rhs, f.If)
                 for arm in (branch.rhs.then, branch.rhs.else_) for bind in every(arm)]  # fmt: skip
        reads = [[self.affine.sum(at) for at in op.args[1:]] for op in found
                 if isinstance(op, f.Op) and op.op == "index"]  # fmt: skip
        return bool(reads) and all(last.get(own) == 1 for *_, last in reads)

    def where_summed(self, ones: list[_Interchange], nest: list[f.Bind], supply: f.Supply) -> list[f.Bind]:
        """The nest where the sums have points."""
        counts = [loop.count for loop in self.summed if loop.count == integer(0) or not natural(loop.count)]
        variables = tuple([one.var for one in ones])
        *before, last = nest
        if not counts:
            return [*before, f.Bind(variables, last.rhs)]
        b = Builder(supply)
        some = all_hold(b, [b.op("gt", (count, integer(0))) for count in counts])
        targets = [one.out.target for one in ones if one.out.target is not None]
        arms = f.Block(tuple(nest), last.vars), f.Block((), tuple(targets))
        return [*block_of(b.binds, ()).binds, f.Bind(variables, f.If(some, *arms))]


def composed(levels: Iterable[tuple[f.Par, Iterable[int]]]) -> list[Step]:
    """The bindings of a nest, but those numbered, which hand the accumulator on; elements of rows are elements of the
    array."""
    rows: dict[str, f.Op] = {}
    around = frozenset[str]()
    steps: list[Step] = []
    for par, chain in levels:
        around |= {index.name for index, _ in par.space}
        for bind in (bind for at, bind in enumerate(par.body.binds) if at not in chain):
            if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index":
                array, *at = bind.rhs.args
                row = rows.get(array.name) if isinstance(array, f.Var) else None
                if row is not None and row.attrs == bind.rhs.attrs:
                    bind = f.Bind(bind.vars, replace(row, args=(*row.args, *at)))
                rows[bind.vars[0].name] = expect_type(f.Op, bind.rhs)
            steps.append(Step(bind, around))
    return steps


def may_repeat(rhs: f.Rhs) -> bool:
    """True for what is cheap to compute again, under a condition too."""
    if isinstance(rhs, f.If):
        return all(may_repeat(bind.rhs) for arm in (rhs.then, rhs.else_) for bind in arm.binds)
    return is_cheap(rhs)


def in_rows(binds: list[f.Bind], loop: Loop) -> bool:
    """True if a loop reads along the rows of an array: its sums are those of vectors, in blocks.  What is left of a row
    is summed one by one, which takes too long if that is much of the row."""
    known = loop.count.value if isinstance(loop.count, f.Const) else LONG
    if isinstance(known, int) and known < LONG and known % LANES >= LANES // 2:
        return False
    inside = every(f.Block(tuple(binds), ()))
    reads = [bind.rhs for bind in inside if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index"]
    return any(len(op.args) > 2 and op.args[-1] == loop.index for op in reads)
