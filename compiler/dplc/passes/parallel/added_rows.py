"""Rows that points add to an accumulator are added as they are computed.

    par i < n to add (c) {                         par i < n to add (c) {
      r = par j < m to keep { ...; yield x }         c' = par j < m to add (b = c) {
      c' = acc_index c r n m i                =>       ...; b' = acc_index b x n m i j; yield b' }
      yield c' }                                     yield c' }

So no row is made, and the nest may be inverted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import every, mentions, with_binds, with_inner
from dplc.passes.simplify.purity import droppable, natural


def added_directly(body: f.Block, supply: f.Supply) -> f.Block:
    """The body of a function, without rows that are made only to be added."""
    if not any(out.acc for bind in every(body) if isinstance(bind.rhs, f.Par) for out in bind.rhs.outs):
        return body
    return _Rows(body, supply).block(body, set())


class _Rows:
    def __init__(self, body: f.Block, supply: f.Supply) -> None:
        self.supply = supply
        self.uses = Counter(mentions(body))
        self.lengths = {bind.vars[0].name for bind in every(body)
                        if isinstance(bind.rhs, f.Op) and bind.rhs.op == "dim"}  # fmt: skip

    def block(self, block: f.Block, accs: set[str]) -> f.Block:
        """The block; `accs` are the accumulators of the Par around it."""
        binds: dict[str, f.Bind] = {}  # by the name of the first variable
        rows: dict[str, f.Par] = {}
        for number, bind in enumerate(block.binds):
            name = bind.vars[0].name if bind.vars else f"{number}"
            bind = self.inside(bind, accs)
            match bind.rhs:
                case f.Par() as par if self.is_row(bind, par):
                    rows[name] = par
                case f.Op() as op if (added := addition(op, accs)) is not None:
                    accs.add(name)
                    acc, row = added
                    if row.name in rows:
                        del binds[row.name]
                        bind = f.Bind(bind.vars, self.adding(rows[row.name], op, acc))
                case _:
                    pass
            binds[name] = bind
        return with_binds(block, tuple(binds.values()))

    def inside(self, bind: f.Bind, accs: set[str]) -> f.Bind:
        own = {out.acc.name for out in bind.rhs.outs if out.acc} if isinstance(bind.rhs, f.Par) else set(accs)
        return with_inner(bind, lambda inner: self.block(inner, set(own)))

    def is_row(self, bind: f.Bind, par: f.Par) -> bool:
        """True for an array of numbers, used once, whose points cannot fail."""
        if [out.kind for out in par.outs] != ["keep"] or self.uses[bind.vars[0].name] != 1 or par.ordered:
            return False
        counted = all(natural(n) or (isinstance(n, f.Var) and n.name in self.lengths) for _, n in par.space)
        return counted and f.is_float(par.body.results[0].ty) and all(droppable(one.rhs) for one in par.body.binds)

    def adding(self, par: f.Par, op: f.Op, acc: f.Var) -> f.Par:
        """The points of a row, which add to an accumulator."""
        inner = f.Var(self.supply.fresh(acc.name), acc.ty)
        after = f.Var(self.supply.fresh(acc.name), acc.ty)
        places = tuple([index for index, _ in par.space])
        dims, rank = tuple([count for _, count in par.space]), rank_of(acc.ty)
        if op.op == "acc_index":
            dims, places = op.args[2 : 2 + rank], (*op.args[2 + rank :], *places)
        added = f.Op("acc_index", (inner, par.body.results[0], *dims, *places), (("rank", rank),), op.span)
        body = f.Block((*par.body.binds, f.Bind((after,), added)), (after,))
        return replace(par, body=body, outs=(f.Out("add", target=acc, acc=inner),))


def addition(op: f.Op, accs: Iterable[str]) -> tuple[f.Var, f.Var] | None:
    """The accumulator and the array that an operation adds to it."""
    match op:
        case f.Op("acc_add", (f.Var(a, f.Arr()) as one, f.Var() as other)):
            return (one, other) if a in accs else (other, one) if other.name in accs else None
        case f.Op("acc_index", (f.Var(a) as acc, f.Var(_, f.Arr()) as added, *_)) if a in accs:
            return acc, added
        case _:
            return None
