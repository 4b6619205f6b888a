"""Nests without what they add to some of their accumulators."""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.walk import is_in, rhs_mentions
from dplc.narrow import expect_type


def without(bind: f.Bind, gone: set[int]) -> f.Bind:
    """A nest that no longer adds to some of its accumulators, given by their numbers."""
    par = expect_type(f.Par, bind.rhs)
    names = {acc.name for k in gone if (acc := par.outs[k].acc) is not None}
    binds = without_additions(par.body.binds, names)
    kept = [k for k in range(len(par.outs)) if k not in gone]
    body = f.Block(tuple(binds), tuple([par.body.results[k] for k in kept]))
    outs = tuple([par.outs[k] for k in kept])
    return f.Bind(tuple([bind.vars[k] for k in kept]), replace(par, body=body, outs=outs))


def without_additions(binds: Sequence[f.Bind], names: set[str]) -> list[f.Bind]:
    """The bindings of a nest without additions to the accumulators of these names, which grow by what they become."""
    made: list[f.Bind] = []
    for bind in binds:
        match bind.rhs:
            case f.Par(outs=outs):
                mine = {k for k, out in enumerate(outs) if is_in(out.target, names)}
                names.update(bind.vars[k].name for k in mine)
                if len(mine) < len(outs):
                    made.append(without(bind, mine) if mine else bind)
            case f.Op(_, (acc, *_)) if is_in(acc, names):
                names.update(var.name for var in bind.vars)
            case f.If(_, then, other) as branch if not names.isdisjoint(rhs_mentions(branch)):
                arms = [without_additions(arm.binds, names) for arm in (then, other)]
                gone = [is_in(result, names) for result in then.results]
                names.update(var.name for var, one in zip(bind.vars, gone, strict=True) if one)
                kept = [i for i, one in enumerate(gone) if not one]
                blocks = [f.Block(tuple(rest), tuple([arm.results[i] for i in kept]))
                          for rest, arm in zip(arms, (then, other), strict=True)]  # fmt: skip
                if kept:
                    made.append(f.Bind(tuple([bind.vars[i] for i in kept]), f.If(branch.cond, *blocks)))
            case _:
                made.append(bind)
    return made
