"""Rows that points only copy are points of their own: flat -> flat.

                                                   m = dim k=1 x
    y = par i < n to keep of (m) {                 y = par i < n to keep of (m) {
      j = ...                                        j = ...
      r = index unchecked=true x j         =>        r = par e < m to keep {
      yield r }                                        z = index unchecked=true x j e;  yield z }
                                                     yield r }

So the nest is one loop that writes numbers side by side, and no row has an owner to count.  The windows of an image are
such rows.  So are parts of rows, `slice r lo hi`, if their length is known, as gates of a recurrent network are: their
element e is element lo + e of the row.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.dims import Dims, dims_of
from dplc.flat.kinds import any_of, kinds
from dplc.flat.types import rank_of
from dplc.flat.walk import rhs_mentions, with_binds, with_body, with_inner
from dplc.passes.simplify.dead_code import drop_unused
from dplc.passes.simplify.purity import HERE

POINTS = any_of(f.Par)


def copied_rows(fn: f.Fn, supply: f.Supply) -> f.Fn:
    return with_body(fn, _Copied(supply, dims_of(fn.body)).block(fn.body))


class _Copied:
    """One function."""

    def __init__(self, supply: f.Supply, dims: Dims) -> None:
        self.supply, self.dims = supply, dims

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & POINTS:
            return block
        binds: list[f.Bind] = []
        for bind in block.binds:
            dims: list[f.Bind] = []
            made = self.nest(bind.rhs, {}, dims) if isinstance(bind.rhs, f.Par) else None
            binds += dims
            binds.append(with_inner(bind, self.block) if made is None else f.Bind(bind.vars, made))
        return with_binds(block, binds)

    def nest(self, par: f.Par, own: dict[str, f.Rhs | None], dims: list[f.Bind]) -> f.Par | None:
        """A Par that keeps such rows, in a nest whose outer Pars bind the variables `own`; None for others.  Adds the
        dimensions of the rows to what is read before the nest."""
        if par.ordered or [(out.kind, out.target) for out in par.outs] != [("keep", None)]:
            return None
        own |= {index.name: None for index, _ in par.space}
        own |= {var.name: bind.rhs for bind in par.body.binds for var in bind.vars}
        for at, bind in enumerate(par.body.binds):
            if bind.vars == par.body.results:
                after = any(bind.vars[0].name in rhs_mentions(one.rhs) for one in par.body.binds[at + 1 :])
                made = None if after else self.row(bind.rhs, own, dims)
                binds = [*par.body.binds[:at], *([f.Bind(bind.vars, made)] if made else []), *par.body.binds[at + 1 :]]
                return replace(par, body=drop_unused(with_binds(par.body, binds))) if made else None
        return None

    def row(self, rhs: f.Rhs, own: dict[str, f.Rhs | None], dims: list[f.Bind]) -> f.Par | None:
        if isinstance(rhs, f.Par):
            return self.nest(rhs, own, dims)
        part, known = None, list[object]()
        if isinstance(rhs, f.Op) and (part := self.part(rhs)):
            known.append(rhs.attr("unchecked"))
            rhs = own.get(part[0].name) or f.Op("index", part[:1], (("unchecked", True),), rhs.span)
        match rhs:
            case f.Op("index", (f.Var(name, f.Arr(f.Num() as elem)) as array, *at)) as op if name not in own:
                known.append(op.attr("unchecked"))
            case _:
                return None
        if not all(known) or len(at) == rank_of(array.ty):
            return None
        space = self.space(array, len(at), part, dims)
        places, binds = [index for index, _ in space], list[f.Bind]()
        if part is not None and part[1] != f.Const(0, f.I64):
            place = f.Var(self.supply.fresh("place"), f.I64)
            binds, places = [f.Bind((place,), f.Op("add", (part[1], places[0])))], [place, *places[1:]]
        number, sure = f.Var(self.supply.fresh("x"), elem), HERE if HERE in known else True
        binds.append(f.Bind((number,), f.Op("index", (array, *at, *places), (("unchecked", sure),), op.span)))
        return f.Par(tuple(space), f.Block(tuple(binds), (number,)), (f.Out("keep"),), op.span)

    def part(self, rhs: f.Op) -> tuple[f.Var, f.Atom, f.Const] | None:
        """The row of which something is a part, where the part begins, and its length."""
        match rhs:
            case f.Op("slice", (f.Var() as row, first, end)):
                length = end if first == f.Const(0, f.I64) else self.dims.length(first, end)
                return (row, first, length) if isinstance(length, f.Const) else None
            case _:
                return None

    def space(
        self, array: f.Var, given: int, part: tuple[f.Var, f.Atom, f.Const] | None, dims: list[f.Bind]
    ) -> list[tuple[f.Var, f.Atom]]:
        """Indices for what is left of the dimensions of an array after the given ones, with their lengths."""
        space: list[tuple[f.Var, f.Atom]] = []
        for k in range(given, rank_of(array.ty)):
            index = f.Var(self.supply.fresh("e"), f.I64)
            length = f.Var(self.supply.fresh("dim"), f.I64)
            if part is not None and k == given:
                space.append((index, part[2]))
                continue
            dims.append(f.Bind((length,), f.Op("dim", (array,), (("k", k),))))
            space.append((index, length))
        return space
