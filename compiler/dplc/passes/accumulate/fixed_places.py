"""An addition to one place of an accumulator, at every step of a loop -> a sum of numbers, which is added once.

    c' = for j < n state (c = a) {                   c1, s' = for j < n state (c = a, s = 0.0) {
      x = acc_index c v m j                 =>         x = acc_index c v m j
      y = acc_index x w m i; yield y }                 t = acc_add s w; yield x, t }
                                                     c' = acc_index c1 s' m i

Reverse mode adds to `i` like this where the body reads an element that does not depend on `j`.  The additions may be in
branches, but not in one for a single step, as at the edge of a grid: they are few already, and `stencils.py` takes them
out of the loop.  Where no step may add, the place may not be there, so it is asked for; and an array that may be null
stays null, so it is asked whether there are steps, or how many of them add.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeGuard

from dpl.node import field, node, record

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.build import Builder, all_hold, block_of, integer, number_zero
from dplc.flat.dims import dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
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
    sums = [_sum(supply, value) for value in chain.values.values()]
    asks = isinstance(loop.inits[k], f.Const) and not (chain.sure and has_steps(loop))
    counted = [_sum(supply, chain.times)] if asks and chain.times and not chain.sure else []
    keep = [i for i in range(width) if i != k or chain.last != state]  # an accumulator that is left alone goes
    last = f.Var(supply.fresh("c"), state.ty) if k in keep else loop.inits[k]
    added = [*sums, *counted]
    adds = [f.Bind((s.after,), f.Op("acc_add", (s.before, s.value))) for s in added]
    results = [chain.last if i == k else loop.body.results[i] for i in keep]
    made = f.For(
        loop.index,
        loop.count,
        (*(loop.state[i] for i in keep), *(s.before for s in added)),
        (*(loop.inits[i] for i in keep), *(f.Const(0.0, s.before.ty) for s in added)),
        f.Block((*chain.binds, *adds), (*results, *(s.after for s in added), *loop.body.results[width:])),
        loop.collect,
    )
    outs = [last if i == k and isinstance(last, f.Var) else bind.vars[i] for i in keep]
    sure = chain.sure if asks or has_steps(loop) else set[Place]()
    sure = set(chain.values) if asks and len(sums) == 1 else sure  # it is there if something was added to it
    end, times = bind.vars[k], counted[0].total if counted else loop.count
    adds = _additions(end, last, chain.values, sums, supply, lambda place: place in sure or is_there(place, numbers()))
    after += _if_any(end, last, times, adds, supply) if asks else adds
    return f.Bind((*outs, *(s.total for s in added), *bind.vars[width:]), made)


def _sum(supply: f.Supply, value: f.Atom) -> _Sum:
    return _Sum(value, *[f.Var(supply.fresh("s"), value.ty) for _ in range(3)])


def _additions(
    end: f.Var, acc: f.Atom, places: Iterable[Place], sums: list[_Sum], supply: f.Supply, there: Callable[[Place], bool]
) -> list[f.Bind]:
    """Adds sums to an accumulator, which is `end` after them."""
    binds: list[f.Bind] = []
    for place, one in zip(places, sums, strict=True):
        var = end if one is sums[-1] else f.Var(supply.fresh("c"), end.ty)
        binds += _addition(var, acc, place, one.total, supply, there(place))
        acc = var
    return binds


def _if_any(end: f.Var, acc: f.Atom, times: f.Atom, adds: list[f.Bind], supply: f.Supply) -> list[f.Bind]:
    """The additions that end with an accumulator, if there are some, as `times` tells; else it stays as it was."""
    b, made = Builder(supply), f.Var(supply.fresh("c"), end.ty)
    some = b.op("gt", (times, number_zero(times.ty)))
    last = f.Bind((made,), adds[-1].rhs)
    b.binds.append(f.Bind((end,), f.If(some, block_of([*adds[:-1], last], (made,)), f.Block((), (acc,)))))
    return list(block_of(b.binds, ()).binds)


def _addition(var: f.Var, acc: f.Atom, place: Place, total: f.Var, supply: f.Supply, there: bool) -> list[f.Bind]:
    """Adds a sum to an accumulator, if its place is there."""
    args, attrs = place
    addition = f.Op("acc_index", (acc, total, *args), attrs)
    if there:
        return [f.Bind((var,), addition)]
    b, half = Builder(supply), len(args) // 2
    tests = [b.op(name, pair) for length, at in zip(args[:half], args[half:], strict=True)
             for name, pair in (("ge", (at, integer(0))), ("lt", (at, length)))]  # fmt: skip
    with b.inside() as binds:
        added = b.one(addition, var.ty, "c")
    b.binds.append(f.Bind((var,), f.If(all_hold(b, tests), block_of(binds, (added,)), f.Block((), (acc,)))))
    return list(block_of(b.binds, ()).binds)


@record
class Chain:
    """The variables that hold an accumulator one after the other, in a block.  `values` are what is added to each fixed
    place.  `binds` is the block without these additions, and `last` its accumulator at the end."""

    fixed: Fixed
    supply: f.Supply
    edges: frozenset[tuple[str, bool]] = frozenset()  # conditions of a single step
    branches: bool = True  # additions may leave branches
    counts: bool = False  # `times` tells how many additions there are: a float, for whose sums steps have no order
    times: f.Atom | None = None
    values: dict[Place, f.Atom] = field(default_factory=dict)
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
                    self.add((tuple(args), attrs), value)
                    self.count(f.Const(1.0, elem_of(now.ty)))
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

    def add(self, place: Place, value: f.Atom) -> None:
        self.values[place] = self.sum(self.values[place], value) if place in self.values else value

    def count(self, more: f.Atom) -> None:
        if self.counts:
            self.times = self.sum(self.times, more) if self.times else more

    def sum(self, one: f.Atom, other: f.Atom) -> f.Var:
        total = f.Var(self.supply.fresh("s"), one.ty)
        self.binds.append(f.Bind((total,), f.Op("acc_add", (one, other))))
        return total

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
        places = {place: value.ty for chain in chains for place, value in chain.values.items()}
        alone = all(chain.last == self.last for chain in chains)  # nothing is left to add in the arms
        keep = [i for i in range(len(bind.vars)) if i != at or not alone]
        zero = f.Const(0.0, elem_of(bind.vars[at].ty))
        counted = [f.Var(self.supply.fresh("n"), zero.ty)] if self.counts and places else []
        done = []
        for chain, block in zip(chains, blocks(bind.rhs), strict=True):
            values = [chain.values.get(place, f.Const(0.0, ty)) for place, ty in places.items()]
            results = [chain.last if i == at else block.results[i] for i in keep]
            done.append(f.Block(tuple(chain.binds), (*results, *values, *[chain.times or zero for _ in counted])))
        sums = [f.Var(self.supply.fresh("s"), ty) for ty in places.values()]
        vars_ = (*[bind.vars[i] for i in keep], *sums, *counted)
        self.binds.append(f.Bind(vars_, with_branches(bind.rhs, done)))
        if not alone:
            self.last = bind.vars[at]
        for place, value in zip(places, sums, strict=True):
            self.add(place, value)
        for times in counted:
            self.count(times)
        self.sure |= set[Place].intersection(*[chain.sure for chain in chains])
        return bind.vars[at]


def never(op: f.Op) -> bool:
    return False


def _there(chain: Chain | None) -> TypeGuard[Chain]:
    return chain is not None
