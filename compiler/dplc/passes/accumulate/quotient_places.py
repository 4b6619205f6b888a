"""Additions at places that a quotient of the index tells, or a rest -> sums over the steps that have the same one.

    c' = for i < 256 state (c = a) {                 t' = for i < 256 state (t = null) {
      q = div i 64;  p = add g q                       yield acc_index t v 256 i }
      x = acc_index c v m p                  =>      c' = for q < 4 state (c = a) {
      yield x }                                        p = add g q
                                                       s = for r < 64 state (s = 0.0) {
                                                         yield acc_add s (index t' (64 q + r)) }
                                                       yield acc_index c s m p }

Reverse mode adds like this where steps read parameters of a group or a channel, `bias[i / 64]` or `bias[i % 8]`.  One
addition then waits for the one before, as many are at one place.  The sums are vectors, and what is added at a step's
own place in `t` is only kept.  This is tiling (Wolfe 1989) of a loop that has been distributed.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.ops.row import Effect, Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import bound_inside, names
from dplc.passes.accumulate.fixed_places import Chain

VECTOR = 8  # so many steps at least have one place: else their sums are no vectors


@node
class _Part:
    """A quotient or rest of a loop's index.  `stride` times it and `others_stride` times the other are the index."""

    var: f.Var
    count: int
    stride: int
    others: int
    others_stride: int


@node
class _Place:
    """The place of an addition: operations on a part of the index."""

    part: _Part
    binds: tuple[f.Bind, ...]


def parted(bind: f.Bind, fresh: Callable[[], f.Supply]) -> list[f.Bind]:
    """A loop, and its additions by quotients and rests after it."""
    loop = bind.rhs
    assert isinstance(loop, f.For)
    found = _Finder(loop).places()
    if not found:
        return [bind]
    after: list[f.Bind] = []
    for k in range(len(loop.state)):
        loop = bind.rhs
        assert isinstance(loop, f.For)
        chain = Chain(lambda op: op.args[2:] in found, fresh(), False)
        chain = chain.follow(loop.body, loop.state[k], k, loop.state[k])
        if chain is not None and chain.values:
            bind = _without(bind, k, chain, found, after)
            return [*parted(bind, fresh), *after]
    return [bind]


def _without(
    bind: f.Bind, k: int, chain: Chain, found: dict[tuple[f.Atom, ...], _Place], after: list[f.Bind]
) -> f.Bind:
    """The loop that keeps what a chain adds to state variable `k` by parts of the index; it is added in `after`."""
    loop = bind.rhs
    assert isinstance(loop, f.For)
    supply, width, state = chain.supply, len(loop.state), loop.state[k]
    alone = chain.last == state  # nothing else is added
    keep = [i for i in range(width) if i != k or not alone]
    last = loop.inits[k] if alone else f.Var(supply.fresh("c"), state.ty)
    b, states, results, outs = Builder(supply), list[f.Var](), list[f.Atom](), list[f.Var]()
    b.binds += chain.binds
    for value in chain.values.values():
        ty = f.Arr(value.ty, 1)
        states.append(b.var("t", ty))
        results.append(b.op("acc_index", (states[-1], value, loop.count, loop.index), rank=1))
        outs.append(b.var("t", ty))
    ends = [chain.last if i == k else loop.body.results[i] for i in keep]
    body = block_of(b.binds, (*ends, *results, *loop.body.results[width:]))
    state_vars = (*[loop.state[i] for i in keep], *states)
    inits = (*[loop.inits[i] for i in keep], *[f.Const(None, t.ty) for t in states])
    made = f.For(loop.index, loop.count, state_vars, inits, body, loop.collect)
    rest = [last if i == k and isinstance(last, f.Var) else bind.vars[i] for i in keep]
    for kept, ((args, attrs), value) in zip(outs, chain.values.items(), strict=True):
        end = bind.vars[k] if kept is outs[-1] else f.Var(supply.fresh("c"), state.ty)
        op = f.Op("acc_index", (last, value, *args), attrs)
        after.append(f.Bind((end,), _sums(found[args], last, kept, op, supply)))
        last = end
    return f.Bind((*rest, *outs, *bind.vars[width:]), made)


def _sums(place: _Place, acc: f.Atom, kept: f.Var, op: f.Op, supply: f.Supply) -> f.For:
    """The loop over the values of a part of the index that adds what was kept for each to an accumulator."""
    part, b = place.part, Builder(supply)
    index, other, state, total = b.var("q", f.I64), b.var("r", f.I64), b.var("c", acc.ty), b.var("s", op.args[1].ty)
    start = b.op("mul", (integer(part.stride), index))
    with b.inside() as inner:
        at = b.op("add", (start, b.op("mul", (integer(part.others_stride), other))))
        added = b.op("acc_add", (total, b.op("index", (kept, at), unchecked=True)))
    sums = f.For(other, integer(part.others), (total,), (f.Const(0.0, total.ty),), block_of(inner, (added,)))
    value = b.one(sums, total.ty, "s")
    copier = Copier(supply, {part.var.name: index})
    b.binds += copier.binds(place.binds)
    places = copier.operands(op.args[2:])
    end = b.one(f.Op("acc_index", (state, value, *places), op.attrs, op.span), acc.ty, "c")
    return f.For(index, integer(part.count), (state,), (acc,), block_of(b.binds, (end,)))


class _Finder:
    """Looks for additions at places that a part of a loop's index tells."""

    def __init__(self, loop: f.For) -> None:
        self.loop = loop
        self.made = {bind.vars[0].name: bind for bind in loop.body.binds if len(bind.vars) == 1}
        self.inside = {var.name for var in bound_inside(loop)}
        self.parts = {part.var.name: part for bind in loop.body.binds for part in _part(bind, loop)}

    def places(self) -> dict[tuple[f.Atom, ...], _Place]:
        """The places of additions of numbers, with what tells them."""
        found: dict[tuple[f.Atom, ...], _Place] = {}
        for bind in self.loop.body.binds if self.parts else ():
            match bind.rhs:
                case f.Op("acc_index", (_, value, *args)) if f.is_float(value.ty):
                    lengths = names(args[: len(args) // 2])
                    place = self.place(args) if self.inside.isdisjoint(lengths) else None
                    if place is not None:
                        found[tuple(args)] = place
                case _:
                    pass
        return found

    def place(self, args: list[f.Atom]) -> _Place | None:
        """What tells the place of an addition, if that is one part of the index."""
        needed, binds, parts = set(names(args)) & self.inside, list[f.Bind](), set[str]()
        for bind in reversed(self.loop.body.binds):
            mine = needed.intersection(names(bind.vars))
            if mine & self.parts.keys():
                parts |= mine
            elif mine:
                if not _is_arithmetic(bind):
                    return None
                binds.append(bind)
                needed |= set(names(_operands(bind))) & self.inside
            needed -= mine
        if needed or len(parts) != 1:  # it depends on the whole index, or on a state
            return None
        return _Place(self.parts[parts.pop()], tuple(reversed(binds)))


def _operands(bind: f.Bind) -> tuple[f.Atom, ...]:
    assert isinstance(bind.rhs, f.Op)
    return bind.rhs.args


def _is_arithmetic(bind: f.Bind) -> bool:
    """True for an operation on whole numbers that cannot fail."""
    rhs = bind.rhs
    if not isinstance(rhs, f.Op) or len(bind.vars) != 1 or bind.vars[0].ty != f.I64:
        return False
    row = OPS[rhs.op]
    return row.scalar is not None and row.effects is Effect.NONE and row.fails is Fails.NEVER


def _part(bind: f.Bind, loop: f.For) -> list[_Part]:
    """A quotient or rest of the index, if the steps are a multiple of the divisor."""
    match bind.rhs, loop.count:
        case f.Op("div" | "mod" as name, (i, f.Const(int(n)))), f.Const(int(steps)) if i == loop.index and n > 1:
            sizes = (steps // n, n, n, 1) if name == "div" else (n, 1, steps // n, n)
            part = _Part(bind.vars[0], *sizes)
            return [part] if steps % n == 0 and part.count > 1 and part.others >= VECTOR else []
        case _:
            return []
