"""An addition to one place of an accumulator, at every step of a loop -> a sum of numbers, which is added once.

    c' = for j < n state (c = a) {                   c1, s' = for j < n state (c = a, s = 0.0) {
      x = acc_index c v m j                 =>         x = acc_index c v m j
      y = acc_index x w m i; yield y }                 t = acc_add s w; yield x, t }
                                                     c' = acc_index c1 s' m i

Reverse mode adds to `i` like this where the body reads an element that does not depend on `j`.  The additions may be in
branches, but not in one for a single step, as at the edge of a grid: they are few already, and `stencils.py` takes them
out of the loop.  Where no step may add, the place may not be there: a sum that is 0.0 is not added then.  An array that
may be null stays null then, so it is asked whether there are steps, or how many of them add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeGuard

from dpl.node import field, node, record

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.dims import dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import (
    blocks,
    bound_inside,
    every,
    mentions,
    names,
    rhs_mentions,
    with_branches,
)

Place = tuple[tuple[f.Atom, ...], tuple[tuple[str, object], ...]]
"""The lengths and indices of an addition, and its attributes."""
Fixed = Callable[[f.Op], bool]
"""True for an addition of a number at a place that does not change."""


def added_once(bind: f.Bind, supply: Callable[[], f.Supply], numbers: Callable[[], Affine]) -> list[f.Bind]:
    """The loop with its additions to places that do not change after it; `numbers` are those of the function."""
    loop = bind.rhs
    assert isinstance(loop, f.For)
    inside = {var.name for var in bound_inside(loop)}
    edges = conditions_of_a_step(loop)

    def fixed(op: f.Op) -> bool:
        return op.op == "acc_index" and not rank_of(op.args[1].ty) and inside.isdisjoint(names(op.args[2:]))

    if not any(isinstance(other.rhs, f.Op) and fixed(other.rhs) for other in every(loop.body)):
        return [bind]
    after: list[f.Bind] = []
    for k in reversed(range(len(loop.state))):
        loop = bind.rhs
        assert isinstance(loop, f.For)
        null = isinstance(loop.inits[k], f.Const)
        chain = Chain(fixed, supply(), edges, counts=null).follow(loop.body, loop.state[k], k, loop.state[k])
        if chain is not None and chain.values:
            bind = _without(bind, k, chain, after, numbers)
    return [bind, *after]


def conditions_of_a_step(loop: f.For) -> frozenset[tuple[str, bool]]:
    """The conditions that hold, or do not hold, in a single step: equalities of the index, plus a constant."""
    sums = {loop.index}
    found = set()
    for bind in every(loop.body):
        match bind.rhs:
            case f.Op("add" | "sub", (a, f.Const())) if a in sums:
                sums.add(bind.vars[0])
            case f.Op("eq" | "ne" as name, args) if not sums.isdisjoint(args):
                found.add((bind.vars[0].name, name == "eq"))
            case _:
                pass
    return frozenset(found)


@node
class _Sum:
    """A sum of what steps add to one place: the `value` in a step; the sum before it, after it, and after the loop."""

    value: f.Atom
    before: f.Var
    after: f.Var
    total: f.Var


def has_steps(loop: f.For) -> bool:
    return isinstance(loop.count, f.Const) and loop.count.value not in (0, None)


def numbers_of(body: f.Block) -> Affine:
    """The numbers of a function, in all its loops."""
    affine = Affine(dims_of(body))
    for bind in every(body):
        affine.define(bind)
        if isinstance(bind.rhs, f.For | f.Build):
            affine.loop(bind.rhs.index, bind.rhs.count)
    return affine


def is_there(place: Place, numbers: Affine) -> bool:
    at, _ = place
    return numbers.is_place(at[: len(at) // 2], at[len(at) // 2 :])


def _without(bind: f.Bind, k: int, chain: Chain, after: list[f.Bind], numbers: Callable[[], Affine]) -> f.Bind:
    """The loop without the additions of a chain to fixed places of state variable `k`; they go to `after`."""
    loop = bind.rhs
    assert isinstance(loop, f.For)
    supply, width, state = chain.supply, len(loop.state), loop.state[k]
    sums = [_sum(supply, value) for value, *_ in chain.values.values()]
    counted = {place: _sum(supply, n) for place, (_, *more) in chain.values.items() for n in more
               if place not in chain.sure}  # fmt: skip
    keep = [i for i in range(width) if i != k or chain.last != state]  # an accumulator that is left alone goes
    last = f.Var(supply.fresh("c"), state.ty) if k in keep else loop.inits[k]
    added = [*sums, *counted.values()]
    adds = [f.Bind((s.after,), _total(s.before, s.value)) for s in added]
    results = [chain.last if i == k else loop.body.results[i] for i in keep]
    made = f.For(
        loop.index,
        loop.count,
        (*(loop.state[i] for i in keep), *(s.before for s in added)),
        (*(loop.inits[i] for i in keep), *(_nothing(s.before.ty) for s in added)),
        f.Block((*chain.binds, *adds), (*results, *(s.after for s in added), *loop.body.results[width:])),
        loop.collect,
    )
    outs = [last if i == k and isinstance(last, f.Var) else bind.vars[i] for i in keep]
    b = Builder(supply)
    for place, one in zip(chain.values, sums, strict=True):
        some = None
        if place in chain.sure:
            some = None if has_steps(loop) else f.Op("gt", (loop.count, integer(0)))
        elif place in counted:
            some = f.Op("gt", (counted[place].total, integer(0)))
        elif not is_there(place, numbers()):
            some = f.Op("ne", (one.total, _nothing(one.total.ty)))
        var = bind.vars[k] if one is sums[-1] else f.Var(supply.fresh("c"), state.ty)
        _add(b, var, f.Op("acc_index", (last, one.total, *place[0]), place[1]), some)
        last = var
    after += block_of(b.binds, ()).binds
    return f.Bind((*outs, *(s.total for s in added), *bind.vars[width:]), made)


def _sum(supply: f.Supply, value: f.Atom) -> _Sum:
    return _Sum(value, *[f.Var(supply.fresh("s"), value.ty) for _ in range(3)])


def _nothing(ty: f.Type) -> f.Const:
    return f.Const(0.0, ty) if f.is_float(ty) else integer(0)


def _total(one: f.Atom, other: f.Atom) -> f.Op:
    return f.Op("acc_add" if f.is_float(one.ty) else "add", (one, other))


def _add(b: Builder, var: f.Var, addition: f.Op, some: f.Op | None) -> None:
    """Binds an accumulator after an addition, which is done only if `some` is true."""
    if some is None:
        b.binds.append(f.Bind((var,), addition))
        return
    cond = b.one(some, f.BOOL, some.op)
    with b.inside() as binds:
        added = b.one(addition, var.ty, "c")
    b.binds.append(f.Bind((var,), f.If(cond, block_of(binds, (added,)), f.Block((), addition.args[:1]))))


@record
class Chain:
    """The variables that hold an accumulator one after the other, in a block.  `values` are what is added to each fixed
    place, and perhaps how often.  `binds` is the block without these additions, `last` its accumulator at the end."""

    fixed: Fixed
    supply: f.Supply
    edges: frozenset[tuple[str, bool]] = frozenset()  # conditions of a single step
    branches: bool = True  # additions may leave branches
    counts: bool = False  # the values have numbers of additions
    values: dict[Place, tuple[f.Atom, ...]] = field(default_factory=dict)
    sure: set[Place] = field(default_factory=set)  # places to which every step adds
    binds: list[f.Bind] = field(default_factory=list)
    last: f.Atom = field(default_factory=lambda: f.Const(None, f.UNIT))

    def follow(self, block: f.Block, now: f.Var, at: int, last: f.Atom) -> Chain | None:
        """Follows the accumulator `now`, which is `last` without the additions, to the result number `at`.  Returns
        None if it is used in other ways."""
        uses = Counter(mentions(block))
        self.last = last
        for bind in block.binds:
            here = Counter(rhs_mentions(bind.rhs))[now.name]
            if not here:
                self.binds.append(bind)
                continue
            step = self.link(bind, now) if here == uses[now.name] else None
            if step is None:
                return None
            now = step
        return self if block.results[at] == now and uses[now.name] == 1 else None

    def link(self, bind: f.Bind, now: f.Var) -> f.Var | None:
        """Takes one step of the chain; returns the next variable."""
        match bind.rhs:
            case f.Op(op, (first, value, *args), attrs, span) if OPS[op].accumulates and first == now != value:
                if self.fixed(bind.rhs):
                    self.add((tuple(args), attrs), (value, integer(1)) if self.counts else (value,))
                    self.sure.add((tuple(args), attrs))
                else:
                    self.binds.append(f.Bind(bind.vars, f.Op(op, (self.last, value, *args), attrs, span)))
                    self.last = bind.vars[0]
                return bind.vars[0]
            case f.For() as loop if loop.inits.count(now) == 1:
                return self.loop(bind, loop, loop.inits.index(now))
            case f.If() | f.Switch() if self.branches:
                return self.branch(bind, now)
            case _:
                return None

    def loop(self, bind: f.Bind, loop: f.For, k: int) -> f.Var | None:
        """An inner loop that only adds to the accumulator.  Its additions stay where they are."""
        if Chain(never, self.supply).follow(loop.body, loop.state[k], k, loop.state[k]) is None:
            return None
        inits = (*loop.inits[:k], self.last, *loop.inits[k + 1 :])
        same = f.For(loop.index, loop.count, loop.state, inits, loop.body, loop.collect)
        self.binds.append(f.Bind(bind.vars, same))
        self.last = bind.vars[k]
        return bind.vars[k]

    def add(self, place: Place, added: tuple[f.Atom, ...]) -> None:
        if place in self.values:
            totals = self.sums(added)
            for total, before, more in zip(totals, self.values[place], added, strict=True):
                self.binds.append(f.Bind((total,), _total(before, more)))
            added = totals
        self.values[place] = added

    def sums(self, added: tuple[f.Atom, ...]) -> tuple[f.Var, ...]:
        return tuple([f.Var(self.supply.fresh("s"), atom.ty) for atom in added])

    def branch(self, bind: f.Bind, now: f.Var) -> f.Var | None:
        """A branch whose arms return the accumulator, with or without additions."""
        arms = blocks(bind.rhs)
        fixed = [self.fixed] * len(arms)
        if isinstance(bind.rhs, f.If) and isinstance(cond := bind.rhs.cond, f.Var):
            fixed = [never if (cond.name, truth) in self.edges else self.fixed for truth in (True, False)]
        for at, var in enumerate(bind.vars):
            if var.ty == now.ty:
                inner = [Chain(one, self.supply, self.edges, counts=self.counts).follow(arm, now, at, self.last)
                         for one, arm in zip(fixed, arms, strict=True)]  # fmt: skip
                if all(map(_there, inner)):
                    return self.joined(bind, at, list(filter(_there, inner)))
        return None

    def joined(self, bind: f.Bind, at: int, chains: list[Chain]) -> f.Var:
        places = {place: added for chain in chains for place, added in chain.values.items()}
        alone = all(chain.last == self.last for chain in chains)  # nothing is left to add in the arms
        keep = [i for i in range(len(bind.vars)) if i != at or not alone]
        done = []
        for chain, block in zip(chains, blocks(bind.rhs), strict=True):
            results = [chain.last if i == at else block.results[i] for i in keep]
            for place, some in places.items():
                results += chain.values.get(place) or [_nothing(atom.ty) for atom in some]
            done.append(f.Block(tuple(chain.binds), tuple(results)))
        sums = [self.sums(added) for added in places.values()]
        vars_ = (*[bind.vars[i] for i in keep], *[var for added in sums for var in added])
        self.binds.append(f.Bind(vars_, with_branches(bind.rhs, done)))
        if not alone:
            self.last = bind.vars[at]
        for place, added in zip(places, sums, strict=True):
            self.add(place, added)
        self.sure |= set[Place].intersection(*[chain.sure for chain in chains])
        return bind.vars[at]


def never(op: f.Op) -> bool:
    return False


def _there(chain: Chain | None) -> TypeGuard[Chain]:
    return chain is not None
