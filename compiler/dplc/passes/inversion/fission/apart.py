"""Fission of loops that add at several places of one array: each place is a loop of its own.

    c' = par t < n to add (c = c0) {                c1 = par t < n to add (c = c0) { ...; acc_index c v m (add t k) }
      ...                                     =>    c' = par t < n to add (c = c1) { ...; acc_index c w m t }
      c1 = acc_index c v m (add t k)
      acc_index c1 w m t }

The places of one loop are then apart, so it adds in vectors: of two, the compiler would have to know that steps of one
vector do not add at one place.  What is added is computed again, so it must be little.  Such loops come from products
of a series and the same series later, where the distance of the places is known only as the program runs.

Rows of a matrix to which a step adds in one column are one loop, whatever rows they are: no other step adds to this
column, and what a step adds is added in order (`machine/emit/points/own_places.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import Affine, Sum
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import bound_inside
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.without_additions import without
from dplc.passes.inversion.forms.own_additions import uses
from dplc.passes.simplify.dead_code import drop_unused

SHORT = 8  # steps that are no vector
SITES = 4  # loops in place of one, at most


def apart(bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply) -> list[f.Bind] | None:
    """The loops in place of one that adds at several places of an array; None if that does not pay."""
    count = par.space[-1][1]
    few = isinstance(count, f.Const) and isinstance(count.value, int) and count.value < SHORT
    if few or par.ordered or not all(map(is_little, par.body.binds)):
        return None
    for one in par.body.binds:
        affine.define(one)
    made: list[f.Bind] = []
    done = set[int]()
    for k in range(len(par.outs)):
        sites = sites_of(par, k, affine)
        if sites is not None:
            made += one_by_one(bind.vars[k], par, k, sites, supply)
            done.add(k)
    if not done:
        return None
    rest = without(bind, done)
    return [rest, *made] if rest.vars else made


def is_little(bind: f.Bind) -> bool:
    """True for arithmetic, reads and additions of numbers."""
    match bind.rhs:
        case f.Op("index" | "acc_index" | "acc_add" as op, (*_, x)):
            return op != "acc_add" or isinstance(x.ty, f.Num)
        case f.Op(op):
            return OPS[op].quick
        case _:
            return False


def sites_of(par: f.Par, k: int, affine: Affine) -> list[set[int]] | None:
    """The numbers of the bindings that add to accumulator number `k`, in groups of one place each; None if there is one
    group only, or if places do not lie side by side."""
    acc = par.outs[k].acc
    chain = None if acc is None else uses(par.body, acc, k)
    if chain is None:
        return None
    sites: dict[object, set[int]] = {}
    columns = set[object]()
    for at in chain:
        op = expect_type(f.Op, par.body.binds[at].rhs)
        totals = [affine.sum(place) for place in op.args[2 + rank_of(op.args[0].ty) :]]
        if not goes_along(totals, par, affine):
            return None
        place = tuple([tuple(sorted(total.items(), key=str)) for total in totals])
        sites.setdefault(place, set()).add(at)
        columns.add(place[-1])
    return list(sites.values()) if len(columns) > 1 and len(sites) <= SITES else None


def goes_along(totals: Sequence[Sum], par: f.Par, affine: Affine) -> bool:
    """True for places that lie side by side as the last index of a Par grows: at this index and what it does not
    change."""
    *before, last = totals
    index = par.space[-1][0].name
    inside = {var.name for var in bound_inside(par)} - {each.name for each, _ in par.space}
    if last.get(index) != 1 or any(index in total for total in before):
        return False
    return inside.isdisjoint([str(term) for total in totals for term in total])


def one_by_one(var: f.Var, par: f.Par, k: int, sites: list[set[int]], supply: f.Supply) -> list[f.Bind]:
    """Loops that add to accumulator number `k` at one place each."""
    made: list[f.Bind] = []
    target, acc = par.outs[k].target, par.outs[k].acc
    assert acc is not None
    gone = set[int]().union(*sites)
    for number, site in enumerate(sites):
        before: f.Atom = acc
        binds: list[f.Bind] = []
        for at, one in enumerate(par.body.binds):
            if at in gone and at not in site:
                continue
            op = expect_type(f.Op, one.rhs)
            if at in site:
                one = f.Bind(one.vars, replace(op, args=(before, *op.args[1:])))
                before = one.vars[0]
            binds.append(one)
        after = var if number == len(sites) - 1 else f.Var(supply.fresh(var.name), var.ty)
        out = replace(par.outs[k], target=target)
        loop = f.Bind((after,), replace(par, body=f.Block(tuple(binds), (before,)), outs=(out,)))
        (loop,) = drop_unused(f.Block((loop,), (after,))).binds
        made.append(f.Bind((after,), Copier(supply, {}).rhs(loop.rhs)))
        target = after
    return made
