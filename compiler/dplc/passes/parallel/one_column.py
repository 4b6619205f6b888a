"""Pars that add to one array, one after the other, at places that only the points with one index add to.

    c1 = par i < n to add (b = c) { ...; acc_index b x m n k i }
    c2 = par i < n to add (d = c1) { ...; acc_index d y m n l i }

All additions tell each index of the space at one and the same place.  So what is added to an element is added by one
point of each Par, and the two can be one, whose points add first x, then y: in the same order, whatever k and l are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.passes.inversion.forms.own_additions import uses


def continued(earlier: f.Bind, second: f.Par, times: Mapping[str, int]) -> dict[int, int]:
    """The sums of a Par that another one goes on with in this way, and that nothing else reads: the numbers of their
    outs in both.  `times` tells how often variables are read."""
    first, found = earlier.rhs, dict[int, int]()
    assert isinstance(first, f.Par)
    for k, out in enumerate(second.outs):
        target = out.target
        if out.kind == "add" and isinstance(target, f.Var) and target in earlier.vars and times[target.name] == 1:
            before = earlier.vars.index(target)
            if first.outs[before].kind == "add" and (told := columns(first, before)) and told == columns(second, k):
                found[before] = k
    return found


def columns(par: f.Par, k: int) -> list[int] | None:
    """At which places of accumulator number `k` all additions of a Par tell its indices; None if they do not."""
    acc = par.outs[k].acc
    chain = None if acc is None else uses(par.body, acc, k)
    told: set[tuple[int, ...]] = set()
    for at in chain or ():
        op = par.body.binds[at].rhs
        if not isinstance(op, f.Op):
            return None
        places: Sequence[f.Atom] = op.args[2 + rank_of(op.args[0].ty) :]
        if any(index not in places for index, _ in par.space):
            return None
        told.add(tuple([places.index(index) for index, _ in par.space]))
    return list(told.pop()) if len(told) == 1 else None


def passed_on(variables: Sequence[f.Var], par: f.Par, sums: dict[int, int]) -> f.Bind:
    """A Par of two, where the sums of these outs go on in others: out number k is left to number sums[k]."""
    outs = list(par.outs)
    for k, after in sums.items():
        outs[after] = replace(outs[k], inner=outs[k].inner or outs[after].inner)
    kept = [k for k in range(len(outs)) if k not in sums]
    body = f.Block(par.body.binds, tuple([par.body.results[k] for k in kept]))
    whole = f.Par(par.space, body, tuple([outs[k] for k in kept]), par.span)
    return f.Bind(tuple([variables[k] for k in kept]), whole)
