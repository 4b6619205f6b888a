"""Nests of loops: their words, and the walk of passes that replace whole nests."""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.walk import with_binds, with_inner
from dplc.passes.simplify.purity import droppable

Guard = tuple[f.Atom, bool]  # a condition, and whether it holds


@node
class Loop:
    """A loop of a nest: its index goes from 0 to the count."""

    index: f.Var
    count: f.Atom


class Unfit(Exception):
    """A nest cannot be inverted."""


def with_nests(
    block: f.Block, affine: Affine, found: Callable[[f.Bind, f.Par | f.For], list[f.Bind] | None],
) -> f.Block:  # fmt: skip
    """The block with other bindings in place of loops, outermost first; `found` gives them, or None.  The numbers
    before a loop are known to `affine` then; what those of a block tell is not known after it.  What is not used and
    has no effect goes."""
    binds, facts = list[f.Bind](), len(affine.facts)
    for bind in block.binds:
        if not bind.vars and droppable(bind.rhs):
            continue
        affine.define(bind)
        affine.loops(bind.rhs)
        made = found(bind, bind.rhs) if isinstance(bind.rhs, f.Par | f.For) else None
        if made is None:
            made = [with_inner(bind, lambda inner: with_nests(inner, affine, found))]
        binds += made
    del affine.facts[facts:]
    return with_binds(block, binds)
