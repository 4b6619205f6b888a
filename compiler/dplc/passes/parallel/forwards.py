"""Loops whose steps have no order count upwards, though reverse mode goes back through them.

    m = sub n 1                                       m = sub n 1
    c' = for j < n state (c = null) {                 c' = for i < n state (c = null) {
      i = sub m j                             =>        ...; c = acc_index c v n i
      ...; c = acc_index c v n i                        yield c }
      yield c }

Then each step adds at its own place, what lies side by side is read so, and the loop can join those of the forward
sweep.
"""

from __future__ import annotations

from collections.abc import Collection

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, combined
from dplc.flat.walk import mentions, rhs_mentions, with_binds, with_inner, with_rhs


def forwards(block: f.Block, affine: Affine, unordered: Collection[str]) -> f.Block:
    """The block, in which loops count upwards; `unordered` are the indices of those whose steps have no order."""
    if not unordered:
        return block
    binds = []
    for bind in block.binds:
        affine.define(bind)
        if isinstance(bind.rhs, f.For) and bind.rhs.index.name in unordered and not bind.rhs.collect:
            bind = with_rhs(bind, upwards(bind.rhs, affine))
        binds.append(with_inner(bind, lambda inner: forwards(inner, affine, unordered)))
    return with_binds(block, binds)


def upwards(loop: f.For, affine: Affine) -> f.For:
    """The loop over i, if its index is used for i = n - 1 - index only."""
    body, own = loop.body, loop.index.name
    using = [bind for bind in body.binds if own in rhs_mentions(bind.rhs)]
    if len(using) != 1 or own in mentions(f.Block((), body.results)):
        return loop
    last = combined(affine.sum(loop.count), {ONE: 1}, -1)
    match using[0]:
        case f.Bind((index,), f.Op("sub", (top, f.Var(name)))) if name == own and affine.sum(top) == last:
            rest = with_binds(body, [bind for bind in body.binds if bind is not using[0]])
            return replace(loop, index=index, body=rest)
        case _:
            return loop
