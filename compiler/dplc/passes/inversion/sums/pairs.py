"""Interactions of pairs: what a nest over all pairs adds at the second index is a sum at the first one, if it is a
number of the pair with its indices exchanged, or the opposite of one (Newton's third law).

    c' = par i < n to add (c = c0) {                      c' = par i < n to add (c = c0) {
      c1, s = par j < n to add (c), fold 0 {                s = par j < n to fold 0 {
        d = sub x y; z = mul d w; u = neg z         =>        d = sub x y; z = mul d w
        c2 = acc_index c u n j                                yield z }
        yield c2, z }                                       c1 = acc_index c s n i
      c3 = acc_index c1 s n i                               c3 = acc_index c1 s n i
      yield c3 }                                            yield c3 }

Place p gets what the pairs (i, p) add: the pairs (p, j) with their indices exchanged, as both loops have the same
steps.  If u, computed so, is z or -z (`opposites.py`), the sum of these is that of z, or its opposite.  No array is
then read and written for each pair, and points add at their own places only.  They do so anyway: what is null stays
null only if there are no points.  Reverse mode makes such nests of energies, kernels and distances of pairs.
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.walk import bound_inside, names, rhs_mentions
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.without_additions import without
from dplc.passes.inversion.forms.conditional import unconditional
from dplc.passes.inversion.forms.own_additions import uses
from dplc.passes.inversion.nests import Unfit
from dplc.passes.inversion.sites.opposites import Name, Names


@node
class Pairs:
    """A nest of pairs: the number of an accumulator, that of the loop over second indices, which adds to it, and the
    additions there."""

    par: f.Par
    out: int
    at: int
    added: tuple[f.Op, ...]

    @property
    def inner(self) -> f.Bind:
        return self.par.body.binds[self.at]


def summed_pairs(bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply) -> f.Bind | None:
    """The nest with sums in place of what pairs add at the second index; None if there are none."""
    if par.ordered or len(par.space) != 1:
        return None
    for k, out in enumerate(par.outs):
        pairs = of_pairs(par, k, affine, supply) if out.kind == "add" else None
        if pairs is not None and (made := summed(pairs, supply)) is not None:
            return replace(bind, rhs=made)
    return None


def of_pairs(par: f.Par, k: int, affine: Affine, supply: f.Supply) -> Pairs | None:
    """The pairs of a nest that adds to accumulator number `k`, without conditions around these additions."""
    acc, ((_, count),) = par.outs[k].acc, par.space
    chain = uses(par.body, acc, k) if acc else None
    if acc is None or not chain or len(chain) < 2:
        return None
    bind = par.body.binds[chain[0]]
    inside = {var.name for var in bound_inside(par)}
    match bind.rhs:
        case f.Par(((index, other),)) as inner if not inner.ordered and affine.sum(other) == affine.sum(count):
            own = next(out.acc for out in inner.outs if out.target == acc)
        case _:
            return None
    if own is None or (plain := without_conditions(inner, own, affine, supply)) is None:
        return None
    inner_chain = uses(plain.body, own, [out.acc for out in plain.outs].index(own))
    added = [plain.body.binds[at].rhs for at in inner_chain or ()]
    ops = tuple([op for op in added if isinstance(op, f.Op) and is_at(op, index, inside)])
    if not ops or len(ops) < len(added):
        return None
    binds = [replace(one, rhs=plain) if one is bind else one for one in par.body.binds]
    return Pairs(replace(par, body=replace(par.body, binds=tuple(binds))), k, chain[0], ops)


def without_conditions(par: f.Par, acc: f.Var, affine: Affine, supply: f.Supply) -> f.Par | None:
    """The Par without conditions around additions to this accumulator; None if they depend on more than these."""
    if not any(isinstance(bind.rhs, f.If) and acc.name in rhs_mentions(bind.rhs) for bind in par.body.binds):
        return par
    try:
        return unconditional(par, affine, supply)
    except Unfit:
        return None


def is_at(op: f.Op, index: f.Var, inside: set[str]) -> bool:
    """True if an addition is at an index, and for the rest at places that all points have."""
    rest = list(op.args[2:])
    if rest.count(index) != 1:
        return False
    rest.remove(index)
    return inside.isdisjoint(names(rest))


def summed(pairs: Pairs, supply: f.Supply) -> f.Par | None:
    """The nest with sums of numbers of the pair; None if what is added is not among these."""
    par, inner = pairs.par, expect_type(f.Par, pairs.inner.rhs)
    acc = par.outs[pairs.out].acc
    assert acc is not None
    mine = [out.target for out in inner.outs].index(acc)
    rest = without(pairs.inner, {mine})
    sums = _Sums(rest, supply)
    table = Names()
    ((i, _),), ((j, _),) = par.space, inner.space
    before = par.body.binds[: pairs.at]
    as_it_is, exchanged = [
        table.of_binds((*before, *inner.body.binds), {i.name: table.named(a), j.name: table.named(b)})
        for a, b in (("first", "second"), ("second", "first"))
    ]
    after: list[f.Bind] = []
    for op in pairs.added:
        found = sums.of(table.of_atom(op.args[1], exchanged), op.args[1].ty, as_it_is, table)
        if found is None:
            return None
        total, sign = found
        if sign < 0:
            after.append(f.Bind((f.Var(supply.fresh("sum"), total.ty),), f.Op("neg", (total,))))
            total = after[-1].vars[0]
        places = [i if arg == j else arg for arg in op.args[2:]]
        made = f.Var(supply.fresh(acc.name), acc.ty)
        after.append(f.Bind((made,), replace(op, args=(acc, total, *places))))
        acc = made
    after[-1] = replace(after[-1], vars=(pairs.inner.vars[mine],))
    binds = (*before, sums.bind, *after, *par.body.binds[pairs.at + 1 :])
    return replace(par, body=replace(par.body, binds=binds))


class _Sums:
    """The loop over second indices, with the sums that are asked for."""

    def __init__(self, bind: f.Bind, supply: f.Supply) -> None:
        self.bind, self.supply = bind, supply

    def of(self, name: Name, ty: f.Type, known: dict[str, Name], table: Names) -> tuple[f.Var, int] | None:
        """The sum of the number of the pair that has this name up to its sign, and the sign."""
        par = expect_type(f.Par, self.bind.rhs)
        for var, out, x in zip(self.bind.vars, par.outs, par.body.results, strict=True):
            found = table.of_atom(x, known)
            if out == f.Out("fold") and found.size == name.size and var.ty == ty:
                return var, found.sign * name.sign
        for bind in par.body.binds:
            for x in bind.vars:
                if x.ty == ty and known[x.name].size == name.size:
                    return self.more(par, x), known[x.name].sign * name.sign
        return None

    def more(self, par: f.Par, x: f.Var) -> f.Var:
        """The sum of one more number."""
        total = f.Var(self.supply.fresh("sum"), x.ty)
        body = replace(par.body, results=(*par.body.results, x))
        self.bind = f.Bind((*self.bind.vars, total), replace(par, body=body, outs=(*par.outs, f.Out("fold"))))
        return total
