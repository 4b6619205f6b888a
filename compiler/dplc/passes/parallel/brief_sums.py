"""flat -> flat where sums whose length grows with a loop around them, as in factorisations, are added in order while
they are short.

    for i < n ... {                                  for i < n ... {
      s = par k < i to fold 0 {               =>       c = lt i 16
        ...; yield x }                                 s = if c { s = for k < i state (s = 0.0) { ...; add s x } }
      ... }                                                else { par k < i to fold 0 { ...; yield x } }
                                                       ... }

So few numbers are added in any case (`dpl/prims/sums.py`); here they take no way through memory.  Only points of little
arithmetic are written twice.  Loops in the points of a Par are left alone, as points are the lanes of vectors there.
"""

from __future__ import annotations

from dpl.node import replace
from dpl.prims.sums import FEW

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.build import Builder, block_of, integer, number_zero
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.kinds import any_of, kinds
from dplc.flat.ops.table import OPS
from dplc.flat.walk import supply_for, with_binds, with_body, with_inner
from dplc.passes.simplify.purity import droppable

MOST = 8  # operations of a point
LOOPS = any_of(f.For, f.While)
SUMS = any_of(f.Par)


def brief_sums(program: f.Program) -> f.Program:
    supply = supply_for(program)
    return replace(program, fns={name: with_brief_sums(fn, supply) for name, fn in program.fns.items()})


def with_brief_sums(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function; one without loops in order, or without sums, is given back."""
    found = kinds(fn.body)
    if not (found & LOOPS and found & SUMS):
        return fn
    return with_body(fn, _Sums(Affine(dims_of(fn.body)), supply).block(fn.body))


class _Sums:
    """The sums of one function."""

    def __init__(self, affine: Affine, supply: f.Supply) -> None:
        self.affine, self.supply = affine, supply

    def block(self, block: f.Block) -> f.Block:
        binds = list[f.Bind]()
        for bind in block.binds:
            self.affine.define(bind)
            match bind.rhs:
                case f.For(index, count):
                    self.affine.loop(index, count)
                case f.Par() as par:
                    binds += self.brief(bind, par) if self.grows(par) and is_little(par) else [bind]
                    continue
                case _:
                    pass
            binds.append(with_inner(bind, self.block))
        return with_binds(block, binds)

    def grows(self, par: f.Par) -> bool:
        """True for one loop whose length depends on the index of one around it."""
        return len(par.space) == 1 and not self.affine.counts.keys().isdisjoint(self.affine.sum(par.space[0][1]))

    def brief(self, bind: f.Bind, par: f.Par) -> list[f.Bind]:
        """The sum in order if it is short."""
        b, ((index, count),) = Builder(self.supply), par.space
        state = tuple([b.var(var.name, var.ty) for var in bind.vars])
        with b.inside() as adds:
            after = [b.op("add", (total, x)) for total, x in zip(state, par.body.results, strict=True)]
        zeros = tuple([number_zero(var.ty) for var in bind.vars])
        body = f.Block((*par.body.binds, *block_of(adds, ()).binds), tuple(after))
        loop = Copier(self.supply, {}).rhs(f.For(index, count, state, zeros, body))
        sums = [tuple([b.var(var.name, var.ty) for var in bind.vars]) for _ in range(2)]
        arms = [f.Block((f.Bind(made, rhs),), made) for made, rhs in zip(sums, (loop, par), strict=True)]
        b.binds.append(f.Bind(bind.vars, f.If(self.is_short(b, count), *arms)))
        return list(block_of(b.binds, ()).binds)

    def is_short(self, b: Builder, count: f.Atom) -> f.Atom:
        """Whether few numbers are added; a negative length is left to the Par, as it is an error."""
        few = b.op("lt", (count, integer(FEW)))
        if self.affine.is_natural(self.affine.sum(count)):
            return few
        return b.op("and", (few, b.op("ge", (count, integer(0)))))


def is_little(par: f.Par) -> bool:
    """True for points that do little and cannot fail, of which floats are summed."""
    if par.ordered or len(par.body.binds) > MOST or any(out != f.Out("fold") for out in par.outs):
        return False
    if not all(isinstance(bind.rhs, f.Op) and droppable(bind.rhs) for bind in par.body.binds):
        return False
    done = [bind.rhs.op for bind in par.body.binds if isinstance(bind.rhs, f.Op)]
    return all(OPS[op].cheap or op == "index" for op in done) and all(f.is_float(x.ty) for x in par.body.results)
