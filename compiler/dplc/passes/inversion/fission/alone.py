"""Fission of nests whose points do little: what is added to one array is a nest of its own, and does the arithmetic
again.  So the gradient of a covariance is added to its rows, and in sums to its means:

    c, s = par i < n to add (c = null),         s = par i < n to fold 0 {
                        fold 0 {                  x = index a i; z = mul x y; yield z }
      x = index a i; z = mul x y          =>    c = par i < n to add (c = null) {
      c' = acc_index c z m i                      x = index a i; z = mul x y
      yield c', z }                               c' = acc_index c z m i; yield c' }

What is more work is kept (`kept_numbers.py`).
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every
from dplc.narrow import expect_type
from dplc.passes.inversion.fission.without_additions import without
from dplc.passes.simplify.dead_code import drop_unused


def alone(bind: f.Bind, par: f.Par, k: int, supply: f.Supply) -> f.Bind | None:
    """The nest that gives only result number `k`; None if it does more than arithmetic, or if the others are written
    over what it may read."""
    if any(out.kind != "add" and out.target for out in par.outs):
        return None
    less = without(bind, {i for i, out in enumerate(par.outs) if i != k and out.acc})  # loops that may fail stay
    at, rest = less.vars.index(bind.vars[k]), expect_type(f.Par, less.rhs)
    body = f.Block(rest.body.binds, (rest.body.results[at],))
    one = f.Bind((bind.vars[k],), replace(rest, body=body, outs=(par.outs[k],)))
    (one,) = drop_unused(f.Block((one,), one.vars)).binds
    sums = all(out.kind == "fold" for i, out in enumerate(par.outs) if i != k)  # then nothing else is kept
    if not all(is_light(inner.rhs, sums) for inner in every(f.Block((one,), ()))):
        return None
    return f.Bind(one.vars, Copier(supply, {}).rhs(one.rhs))


def is_light(rhs: f.Rhs, sums: bool) -> bool:
    """True for arithmetic, reads, additions, and loops of these; for `sums` of what is added, too."""
    match rhs:
        case f.Op("acc_add", (x, _)):
            return sums and isinstance(x.ty, f.Num)
        case f.Op(op):
            return OPS[op].quick or OPS[op].views or OPS[op].accumulates
        case f.Par():
            return not rhs.ordered and all(out.kind == "add" for out in rhs.outs)
        case _:
            return isinstance(rhs, f.TupGet | f.TupMake | f.If)
