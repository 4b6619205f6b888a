"""flat -> flat where sums whose length grows with a loop around them, as in factorisations, are added in order while
they are short.

    for i < n ... {                                  for i < n ... {
      s = par k < i to fold 0 {               =>       c = lt i 16
        ...; yield x }                                 s = if c { s = for k < i state (s = 0.0) { ...; add s x } }
      ... }                                                else { par k < i to fold 0 { ...; yield x } }
                                                       ... }

So few numbers are added in any case (`dpl/prims/sums.py`); here they take no way through memory.  Only points of little
arithmetic are written twice.  Loops in the points of a Par are left alone, as points are the lanes of vectors there.

    for i < 12 { s = par k < i to fold 0 { ...; yield x } }   =>   s = for k < i state (s = 0.0) { ...; add s x }

Where a sum is short in every case, as the ranges of indices tell, nothing is written twice, whatever it adds besides.
Sums of elementary functions stay: these are vectors.
"""

from __future__ import annotations

from functools import partial

from dpl.node import replace
from dpl.prims.sums import FEW

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, combined
from dplc.flat.build import Builder, block_of, integer, number_zero
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.elementary import is_function
from dplc.flat.kinds import any_of, kinds
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, supply_for, with_binds, with_body, with_inner
from dplc.narrow import expect_type
from dplc.passes.simplify.purity import droppable

MOST = 8  # operations of a point
SUMS = any_of(f.Par)


def brief_sums(program: f.Program) -> f.Program:
    supply = supply_for(program)
    return replace(program, fns={name: with_brief_sums(fn, supply) for name, fn in program.fns.items()})


def with_brief_sums(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function; one without sums is given back."""
    if not kinds(fn.body) & SUMS:
        return fn
    return with_body(fn, _Sums(Affine(dims_of(fn.body)), supply).block(fn.body))


class _Sums:
    """The sums of one function."""

    def __init__(self, affine: Affine, supply: f.Supply) -> None:
        self.affine, self.supply = affine, supply

    def block(self, block: f.Block, in_points: bool = False) -> f.Block:
        """The block; the lengths of sums `in_points` of a Par are not asked for as the program runs."""
        binds = list[f.Bind]()
        for bind in block.binds:
            self.affine.define(bind)
            match bind.rhs:
                case f.For(index, count):
                    self.affine.loop(index, count)
                case f.Par() as par:
                    binds += self.sums(bind, par, in_points)
                    continue
                case _:
                    pass
            binds.append(with_inner(bind, partial(self.block, in_points=in_points)))
        return with_binds(block, binds)

    def sums(self, bind: f.Bind, par: f.Par, in_points: bool) -> list[f.Bind]:
        """A Par, in order if its sums are short."""
        short = self.is_always_short(par)
        if not short and not in_points and self.grows(par) and is_little(par):
            return self.brief(bind, par)
        self.affine.loops(par)
        bind = with_inner(bind, partial(self.block, in_points=True))
        return [f.Bind(bind.vars, self.in_order(expect_type(f.Par, bind.rhs))) if short else bind]

    def grows(self, par: f.Par) -> bool:
        """True for one loop whose length depends on the index of one around it."""
        return len(par.space) == 1 and not self.affine.counts.keys().isdisjoint(self.affine.sum(par.space[0][1]))

    def is_always_short(self, par: f.Par) -> bool:
        """True for one loop that adds up floats, and is known to have fewer steps than are added in order.  Elementary
        functions are left to vectors."""
        if any(is_function(bind.rhs) for bind in every(par.body)):
            return False
        plain = {(out.kind, out.rank, out.kept, out.inner) for out in par.outs} - {("add", 0, False, ())}
        if len(par.space) != 1 or par.ordered or plain != {("fold", 0, False, ())}:
            return False
        count = self.affine.exact(par.space[0][1])
        left = combined({ONE: FEW - 1}, count, -1)
        return set(count) != {ONE} and self.affine.is_natural(count) and self.affine.is_natural(left)

    def brief(self, bind: f.Bind, par: f.Par) -> list[f.Bind]:
        """The sum in order if it is short."""
        b, count = Builder(self.supply), par.space[0][1]
        loop = Copier(self.supply, {}).rhs(self.in_order(par))
        sums = [tuple([b.var(var.name, var.ty) for var in bind.vars]) for _ in range(2)]
        arms = [f.Block((f.Bind(made, rhs),), made) for made, rhs in zip(sums, (loop, par), strict=True)]
        b.binds.append(f.Bind(bind.vars, f.If(self.is_short(b, count), *arms)))
        return list(block_of(b.binds, ()).binds)

    def in_order(self, par: f.Par) -> f.For:
        """The loop in order that adds the same numbers."""
        b, ((index, count),) = Builder(self.supply), par.space
        both = list(zip(par.outs, par.body.results, strict=True))
        state = tuple([out.acc or b.var("sum", x.ty) for out, x in both])
        inits = tuple([out.target or number_zero(x.ty) for out, x in both])
        with b.inside() as adds:
            after = [x if out.acc else b.op("add", (s, x)) for s, (out, x) in zip(state, both, strict=True)]
        body = f.Block((*par.body.binds, *block_of(adds, ()).binds), tuple(after))
        return f.For(index, count, state, inits, body)

    def is_short(self, b: Builder, count: f.Atom) -> f.Atom:
        """Whether few numbers are added; a negative length is left to the Par, as it is an error."""
        few = b.op("lt", (count, integer(FEW)))
        if self.affine.is_natural(self.affine.exact(count)):
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
