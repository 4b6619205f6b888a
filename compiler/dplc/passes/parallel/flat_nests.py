"""A nest of Pars as one Par, where something reads what it keeps at its points.

    b = par i < n to keep of (m) {              b = par i < n, j < m to keep {
      k = mul 2 i                          =>     k = mul 2 i
      r = par j < m to keep {                     x = index c k j; yield x }
        x = index c k j; yield x }
      yield r }

What the outer points compute before the inner ones must be arithmetic on indices, which is computed again.
"""

from __future__ import annotations

from dpl.node import replace
from dpl.source import NOWHERE

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.passes.simplify.purity import droppable


def flat_nest(par: f.Par) -> f.Par:
    """The Par with the dimensions of the Par that its body ends in, if that is all that its points keep."""
    match par.body:
        case f.Block((*before, f.Bind(variables, f.Par() as inner)), results) if variables == results:
            pass
        case _:
            return par
    if par.ordered or inner.ordered or not all(map(is_index_arithmetic, before)):
        return par
    if any(out.kind != "keep" or out.target is not None or out.order for out in (*par.outs, *inner.outs)):
        return par
    own = {index for index, _ in par.space} | {var for bind in before for var in bind.vars}
    counts = tuple([count for _, count in inner.space])
    if not own.isdisjoint(counts):
        return par
    if not all(is_some(count) for _, count in par.space):  # rows that are not there have the sizes that are told
        told = [(out.inner, (*counts, *one.inner)) for out, one in zip(par.outs, inner.outs, strict=True)]
        if any(outer not in ((), whole) for outer, whole in told):
            return par
    body = replace(inner.body, binds=(*before, *inner.body.binds))
    return flat_nest(f.Par((*par.space, *inner.space), body, inner.outs, placed(inner, par)))


def placed(one: f.Par, other: f.Par) -> f.Span:
    """The place of one of them that is a comprehension: its count is checked, and that of a loop is not."""
    return other.span if one.span == NOWHERE else one.span


def is_index_arithmetic(bind: f.Bind) -> bool:
    op = bind.rhs
    if not isinstance(op, f.Op) or not OPS[op.op].elementwise or not droppable(op):
        return False
    return all(x.ty == f.I64 for x in (*op.args, *bind.vars))


def is_some(count: f.Atom) -> bool:
    return isinstance(count, f.Const) and isinstance(count.value, int) and count.value > 0
