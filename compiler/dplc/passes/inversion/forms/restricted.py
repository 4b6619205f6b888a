"""Loops that add only where their index lies between two bounds go from the one to the other.

    par k < m to add (c = c0) {                   a = max 0 (16 - i); b = min m (n + 16 - i)
      s = i + k - 16; g = 0 <= s && s < n         par j < max (b - a) 0 to add (c = c0) {
      if g { x = index w k                   =>     k = add j a; s = i + k - 16
             acc_index c x n s }                    x = index w k
      else { c } }                                  acc_index c x n s }

So do the windows of a convolution that reach beyond its ends, and pairs of which the second is not greater.  Every step
adds then, and no step asks, so the additions are done in vectors.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined, natural_where
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.walk import bound_inside, every
from dplc.flat.written_sums import written
from dplc.passes.inversion.nests import Unfit
from dplc.passes.simplify.purity import droppable


def restricted(bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply) -> list[f.Bind] | None:
    """The bindings in place of a loop that does nothing outside of some bounds; None for other loops."""
    *before, last = par.body.binds or (None,)
    if len(par.space) != 1 or par.ordered or last is None or not isinstance(branch := last.rhs, f.If):
        return None
    if any(out.kind != "add" for out in par.outs) or par.body.results != last.vars:
        return None
    if not all(map(is_arithmetic, before)):
        return None
    if branch.else_ != f.Block((), tuple([out.acc for out in par.outs if out.acc is not None])):
        return None
    ((index, count),) = par.space
    for one in before:
        affine.define(one)
    affine.loop(index, count)
    b = Builder(supply)
    try:
        start, end = _Bounds(par, affine, b).of(branch.cond)
    except Unfit:
        return None
    steps = b.op("max", (b.op("sub", (end, start)), integer(0)))
    step = b.var(index.name, f.I64)
    at = f.Bind((index,), f.Op("add", (step, start)))
    body = f.Block((at, *before, *branch.then.binds), branch.then.results)
    made = f.Bind(bind.vars, replace(par, space=((step, steps),), body=body))
    return [*block_of(b.binds, ()).binds, made]


def is_arithmetic(bind: f.Bind) -> bool:
    """True for what conditions need, of whole numbers: it cannot fail."""
    whole = all(var.ty in (f.I64, f.BOOL) for var in bind.vars)
    match bind.rhs:
        case f.Op(args=args) as op:
            return whole and droppable(op) and all(arg.ty in (f.I64, f.BOOL) for arg in args)
        case f.If(_, then, other):
            return whole and all(map(is_arithmetic, (*then.binds, *other.binds)))
        case _:
            return False


class _Bounds:
    """The bounds between which a condition of a loop's index holds, as numbers from outside of the loop."""

    def __init__(self, par: f.Par, affine: Affine, b: Builder) -> None:
        self.affine, self.b = affine, b
        ((self.index, self.count),) = par.space
        self.inside = {var.name for var in bound_inside(par)}
        self.defined = {var.name: (bind.rhs, k) for bind in every(par.body) for k, var in enumerate(bind.vars)}
        for bind in every(par.body):
            affine.define(bind)

    def of(self, cond: f.Atom) -> tuple[f.Atom, f.Atom]:
        """The first step for which a condition holds, and the one after the last; the same if there is none."""
        b = self.b
        start: f.Atom = integer(0)
        end = self.count
        for total in self.facts(cond):
            factor = total.get(self.index.name, 0)
            rest = {term: n for term, n in total.items() if term != self.index.name}
            if factor == 1:
                start = b.op("max", (start, self.written(combined({}, rest, -1))))
            elif factor == -1:
                end = b.op("min", (end, self.written(combined(rest, {ONE: 1}, 1))))
            elif factor == 0:
                there = b.op("ge", (self.written(rest), integer(0)))
                end = b.op("select", (there, end, integer(0)))
            else:
                raise Unfit
        return start, end

    def facts(self, cond: f.Atom) -> list[Sum]:
        """The sums that are 0 or greater exactly where a condition holds."""
        rhs, k = self.defined.get(cond.name, (None, 0)) if isinstance(cond, f.Var) else (None, 0)
        match rhs:
            case f.Op("and", parts):
                return [fact for part in parts for fact in self.facts(part)]
            case f.If(first, then, other) if other.results[k] == f.Const(False, f.BOOL):
                return [*self.facts(first), *self.facts(then.results[k])]
            case f.Op() as op:
                return [self.compared(op)]
            case _:
                raise Unfit

    def compared(self, op: f.Op) -> Sum:
        """The sum that is 0 or greater where a comparison holds."""
        difference = self.affine.difference(op)
        if difference is not None and (total := natural_where(op.op, difference)) is not None:
            return total
        for factor in (1, -1) if difference is not None and op.op == "ne" else ():
            one = combined({}, difference or {}, factor)
            if self.affine.is_natural(one):  # neither is beyond the other
                return combined(one, {ONE: 1}, -1)
        raise Unfit

    def written(self, total: Sum) -> f.Atom:
        """The number that a sum is.  What is neither a length nor an index may be so large that sums overflow."""
        for term in total.keys() - {ONE}:
            name = term[0] if isinstance(term, tuple) else term
            if name in self.inside or not (isinstance(term, tuple) or term in self.affine.counts):
                raise Unfit
        return written(self.b, self.affine, total)
