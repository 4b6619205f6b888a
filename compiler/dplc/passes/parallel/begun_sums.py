"""A sum of arrays over the steps of a loop in order begins with zeros, so that each step adds as it computes.

    s, c = for i < n state (s = s0, c = null) {           z = acc_zeros null m
      v = ...; c' = acc_add c v                    =>     s, c = for i < n state (s = s0, c = z) {
      yield t, c' }                                         ...

The sum of null and an array is the array, so the first step of such a loop adds nothing, and all of them ask.  An array
that is there (`solid.py`) is added to by a loop over its elements, which joins the one that computes what is added.
Zeros take as long as one step saves: a loop of one or two steps keeps its null.  The lengths are those of what is
added, if they are known before the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.dims import Dims, inside
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import bound_inside, with_binds, with_inner, with_rhs
from dplc.passes.parallel.additive import Trail
from dplc.passes.parallel.solid import Solid

FEW = 2  # steps
SUMS = any_of("acc_add")

Trails = Callable[[f.For, int], Trail | None]  # how a loop adds to a state


def begun_sums(
    block: f.Block, supply: f.Supply, dims: Callable[[], Dims], solid: Solid, trails: Trails
) -> f.Block:  # fmt: skip
    """The block, in which the sums of loops in order begin with zeros."""
    if not kinds(block) & SUMS:
        return block
    binds: list[f.Bind] = []
    for bind in block.binds:
        if isinstance(bind.rhs, f.For):
            b = Builder(supply)
            bind = with_rhs(bind, _begun(b, bind.rhs, dims, solid, trails))
            binds += block_of(b.binds, ()).binds
        binds.append(with_inner(bind, lambda inner: begun_sums(inner, supply, dims, solid, trails)))
    return with_binds(block, binds)


def _begun(b: Builder, loop: f.For, dims: Callable[[], Dims], solid: Solid, trails: Trails) -> f.For:
    """The loop, where `b` writes zeros for those of its sums that may begin as null."""
    inits = list(loop.inits)
    for k, state in enumerate(loop.state):
        if inits[k] in solid or not f.is_float(elem_of(state.ty)) or _is_short(loop):
            continue
        added = _added(loop, state, trails(loop, k))
        if added is not None and added in solid and (lengths := _lengths(b, loop, dims(), added)) is not None:
            inits[k] = b.op("acc_zeros", (inits[k], *lengths))
    return loop if tuple(inits) == loop.inits else replace(loop, inits=tuple(inits))


def _is_short(loop: f.For) -> bool:
    return isinstance(loop.count, f.Const) and isinstance(loop.count.value, int) and loop.count.value <= FEW


def _added(loop: f.For, state: f.Var, trail: Trail | None) -> f.Var | None:
    """The array that each step adds to a state first."""
    match trail:
        case [f.Bind(_, f.Op("acc_add", args)) as bind, *_] if state in args and bind in loop.body.binds:
            others = [a for a in args if isinstance(a, f.Var) and a.ty == state.ty and a != state]
            return others[0] if len(others) == 1 else None
        case _:
            return None


def _lengths(b: Builder, loop: f.For, dims: Dims, array: f.Var) -> list[f.Atom] | None:
    """The lengths of an array of a loop's body; None if they are not known before the loop."""
    own = {var.name for var in bound_inside(loop)}
    found = [dims.of(array, k) for k in range(rank_of(array.ty))]
    if any(dim is None or inside(dim, own) for dim in found):
        return None
    return [b.op("dim", (dim[0],), k=dim[1]) if isinstance(dim, tuple) else dim for dim in found if dim is not None]
