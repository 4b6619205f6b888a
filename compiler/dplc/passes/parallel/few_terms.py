"""Sums of which one or two terms are not zero: only these are computed (the sifting property of Kronecker's delta).

    s = par j < m to fold 0 {               x = index u p
      e = eq j p                            t = mul x w
      t = if e { x = index u j        =>    s = acc_add 0.0 t
                 t = mul x w; yield t }
          else { yield 0.0 }
      yield t }                             0 <= p < m

So the gradient does not go through all of a matrix of which a comprehension changed a row or two columns:
`[for i < n, j < n -> if j = p then ... else a[i, j]]`.  The places are indices for certain, and two differ, so nothing
is asked.  Two numbers and zeros have one sum in any order; with three, the order would matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.copy import Copier
from dplc.flat.dims import dims_of
from dplc.flat.walk import bound_inside, every, names, needed, with_binds, with_blocks, with_body, with_rhs
from dplc.passes.inversion.nests import Unfit
from dplc.passes.simplify.purity import droppable

FEW = 2


def few_terms(fn: f.Fn, supply: f.Supply) -> f.Fn:
    if not any(isinstance(bind.rhs, f.Par) and is_sum(bind.rhs) for bind in every(fn.body)):
        return fn
    return with_body(fn, _Sums(Affine(dims_of(fn.body)), supply).block(fn.body))


def is_sum(par: f.Par) -> bool:
    """True for points that add up numbers, do nothing else, and end in a branch."""
    sums = all(out.kind == "fold" and f.is_float(x.ty) for out, x in zip(par.outs, par.body.results, strict=True))
    return sums and len(par.space) == 1 and not par.ordered and isinstance(last_of(par.body), f.If)


def last_of(block: f.Block) -> f.Rhs | None:
    return block.binds[-1].rhs if block.binds else None


@node
class Term:
    """What is added at a place."""

    place: f.Atom
    binds: tuple[f.Bind, ...]
    results: tuple[f.Atom, ...]


class _Sums:
    """One function."""

    def __init__(self, affine: Affine, supply: f.Supply) -> None:
        self.affine, self.supply = affine, supply

    def block(self, block: f.Block) -> f.Block:
        return with_binds(block, [made for bind in block.binds for made in self.bind(bind)])

    def bind(self, bind: f.Bind) -> Sequence[f.Bind]:
        self.affine.define(bind)
        self.affine.loops(bind.rhs)
        bind = with_rhs(bind, with_blocks(bind.rhs, self.block))
        if isinstance(bind.rhs, f.Par) and is_sum(bind.rhs) and all(droppable(one.rhs) for one in bind.rhs.body.binds):
            try:
                return self.added(bind, bind.rhs)
            except Unfit:
                pass
        return [bind]

    def added(self, bind: f.Bind, par: f.Par) -> list[f.Bind]:
        """The sum of the terms of a Par."""
        found = list(self.terms(par, par.body))
        places = [term.place for term in found]
        if len(found) > FEW or not all(self.affine.is_place((par.space[0][1],), (place,)) for place in places):
            raise Unfit
        if len(found) == FEW and not self.affine.differ(*places):
            raise Unfit
        made: list[f.Bind] = []
        totals: list[f.Atom] = [f.Const(0.0, var.ty) for var in bind.vars]
        for number, term in enumerate(found, 1):
            used = tuple(needed(term.binds, names(term.results)))
            copy = Copier(self.supply, {par.space[0][0].name: term.place}).block(f.Block(used, term.results))
            made += copy.binds
            for k, var in enumerate(bind.vars):
                after = var if number == len(found) else f.Var(self.supply.fresh(var.name), var.ty)
                made.append(f.Bind((after,), f.Op("acc_add", (totals[k], copy.results[k]))))
                totals[k] = after
        return made

    def terms(self, par: f.Par, block: f.Block) -> Iterator[Term]:
        """What a block of the points gives at each place where that is not zero."""
        *before, last = block.binds or (None,)
        if last is None or not isinstance(branch := last.rhs, f.If) or not set(block.results) <= set(last.vars):
            raise Unfit
        place = self.place(par, branch.cond)
        here, other = [f.Block(arm.binds, tuple([arm.results[last.vars.index(x)] for x in block.results]))
                       for arm in (branch.then, branch.else_)]  # fmt: skip
        yield Term(place, (*before, *here.binds), here.results)
        if any(x != f.Const(0.0, x.ty) for x in other.results):
            for term in self.terms(par, other):
                yield Term(term.place, (*before, *term.binds), term.results)

    def place(self, par: f.Par, cond: f.Atom) -> f.Atom:
        """The number from outside that the index is, if a condition holds."""
        asked = next((bind.rhs for bind in every(par.body) if cond in bind.vars), None)
        if not isinstance(asked, f.Op) or asked.op != "eq":
            raise Unfit
        index, inside = par.space[0][0], {var.name for var in bound_inside(par)}
        others = [x for x in asked.args if x != index]
        if len(others) != 1 or not inside.isdisjoint(names(others)):
            raise Unfit
        return others[0]
