"""Rows that points only copy are points of their own: flat -> flat.

                                                   m = dim k=1 x
    y = par i < n to keep of (m) {                 y = par i < n to keep of (m) {
      j = ...                                        j = ...
      r = index unchecked=true x j         =>        r = par e < m to keep {
      yield r }                                        z = index unchecked=true x j e;  yield z }
                                                     yield r }

So the nest is one loop that writes numbers side by side, and no row has an owner to count.  The windows of an image are
such rows.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import rank_of
from dplc.flat.walk import rhs_mentions, with_binds, with_body, with_inner

POINTS = any_of(f.Par)


def copied_rows(fn: f.Fn, supply: f.Supply) -> f.Fn:
    return with_body(fn, _Copied(supply).block(fn.body))


class _Copied:
    """One function."""

    def __init__(self, supply: f.Supply) -> None:
        self.supply = supply

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & POINTS:
            return block
        binds: list[f.Bind] = []
        for bind in block.binds:
            dims: list[f.Bind] = []
            made = self.nest(bind.rhs, set(), dims) if isinstance(bind.rhs, f.Par) else None
            binds += dims
            binds.append(with_inner(bind, self.block) if made is None else f.Bind(bind.vars, made))
        return with_binds(block, binds)

    def nest(self, par: f.Par, own: set[str], dims: list[f.Bind]) -> f.Par | None:
        """A Par that keeps such rows, in a nest whose outer Pars bind the variables `own`; None for others.  Adds the
        dimensions of the rows to what is read before the nest."""
        if par.ordered or [(out.kind, out.target) for out in par.outs] != [("keep", None)]:
            return None
        own |= {index.name for index, _ in par.space} | {var.name for bind in par.body.binds for var in bind.vars}
        for at, bind in enumerate(par.body.binds):
            if bind.vars == par.body.results:
                after = any(bind.vars[0].name in rhs_mentions(one.rhs) for one in par.body.binds[at + 1 :])
                made = None if after else self.row(bind.rhs, own, dims)
                binds = [*par.body.binds[:at], *([f.Bind(bind.vars, made)] if made else []), *par.body.binds[at + 1 :]]
                return replace(par, body=with_binds(par.body, binds)) if made else None
        return None

    def row(self, rhs: f.Rhs, own: set[str], dims: list[f.Bind]) -> f.Par | None:
        match rhs:
            case f.Par():
                return self.nest(rhs, own, dims)
            case f.Op("index", (f.Var(name, f.Arr(f.Num() as elem, rank)) as array, *at)) as op if name not in own:
                pass
            case _:
                return None
        if not op.attr("unchecked") or len(at) == rank_of(array.ty):
            return None
        space: list[tuple[f.Var, f.Atom]] = []
        for k in range(len(at), rank):
            length, index = f.Var(self.supply.fresh("dim"), f.I64), f.Var(self.supply.fresh("e"), f.I64)
            dims.append(f.Bind((length,), f.Op("dim", (array,), (("k", k),))))
            space.append((index, length))
        number = f.Var(self.supply.fresh("x"), elem)
        read = f.Bind((number,), replace(op, args=(*op.args, *[index for index, _ in space])))
        return f.Par(tuple(space), f.Block((read,), (number,)), (f.Out("keep"),), op.span)
