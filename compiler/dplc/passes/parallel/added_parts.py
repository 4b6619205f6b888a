"""Parts of rows that points add to an accumulator are added element by element.

    par i < n to add (c) {                         par i < n to add (c) {
      r = index a i                                  r = index a i
      s = acc_slice null r m lo             =>       c' = par j < l to add (b = c) {
      c' = acc_index c s n m i                         x = index r j; k = add lo j
      yield c' }                                       b' = acc_index b x n m i k; yield b' }
                                                     yield c' }

So no row is made that is zero but for this part.  An element of an accumulator to which nothing is added is zero, as it
is after zero was added.  The row that is added is there, as it is read out of an array.
"""

from __future__ import annotations

from collections import Counter

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.dims import dims_of
from dplc.flat.types import rank_of
from dplc.flat.walk import every, mentions, with_binds, with_inner
from dplc.narrow import expect_type
from dplc.passes.parallel.added_rows import addition


def added_parts(body: f.Block, supply: f.Supply) -> f.Block:
    """The body of a function, whose points make no rows of zeros around parts that they add."""
    if not any(isinstance(bind.rhs, f.Op) and bind.rhs.op == "acc_slice" for bind in every(body)):
        return body
    return _Parts(body, supply).block(body, set())


class _Parts:
    def __init__(self, body: f.Block, supply: f.Supply) -> None:
        self.supply, self.dims = supply, dims_of(body)
        self.uses = Counter(mentions(body))
        self.rows = {bind.vars[0].name for bind in every(body)
                     if isinstance(bind.rhs, f.Op) and bind.rhs.op == "index"}  # fmt: skip

    def block(self, block: f.Block, accs: set[str]) -> f.Block:
        """The block; `accs` are the accumulators of the Par around it."""
        binds: list[f.Bind] = []
        parts: dict[str, f.Bind] = {}
        for bind in block.binds:
            own = {out.acc.name for out in bind.rhs.outs if out.acc} if isinstance(bind.rhs, f.Par) else set(accs)
            bind = with_inner(bind, lambda inner, own=own: self.block(inner, own))
            match bind.rhs:
                case f.Op("acc_slice", (f.Const(None), f.Var(name) as row, _, _)) if name in self.rows:
                    if isinstance(self.dims.of(row, 0), f.Const):
                        parts[bind.vars[0].name] = bind
                case f.Op("acc_index" | "acc_slice" | "acc_add") as op if (added := addition(op, accs)) is not None:
                    accs.add(bind.vars[0].name)
                    part = parts.get(added[1].name) if op.op == "acc_index" else None
                    if part is not None and self.uses[added[1].name] == 1:
                        binds.remove(part)
                        bind = f.Bind(bind.vars, self.points(added[0], op, expect_type(f.Op, part.rhs)))
                case _:
                    pass
            binds.append(bind)
        return with_binds(block, binds)

    def points(self, acc: f.Var, op: f.Op, part: f.Op) -> f.Par:
        """The points that add the elements of a part."""
        b, rank = Builder(self.supply), rank_of(acc.ty)
        row, lo, places = part.args[1], part.args[3], op.args[2 + rank :]
        index, inner = b.var("e", f.I64), b.var(acc.name, acc.ty)
        x = b.op("index", (row, index), unchecked=True)
        place = b.op("add", (lo, index))
        after = b.op("acc_index", (inner, x, *op.args[2 : 2 + rank], *places, place), op.span, rank=rank)
        space = ((index, expect_type(f.Const, self.dims.of(row, 0))),)
        return f.Par(space, block_of(b.binds, (after,)), (f.Out("add", target=acc, acc=inner),), op.span)
