"""Loop interchange of nests whose points add at their own places, the innermost index first: they add row by row.

    c' = par j < m to add (c = c0) {                    c' = par i < n to add (c = c0) {
      y = index v j                                       par j < m to add (c) {
      par i < n to add (c) {                        =>      y = index v j
        ...; c = acc_index c x n m i j                      ...; c = acc_index c x n m i j
        yield c } }                                         yield c } }

Each place gets what one point adds, so the order of points makes no difference, and can be kept (`own_additions.py`).
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import names
from dplc.passes.inversion.forms.own_additions import uses

MOST = 8  # operations of the outer loop, which each point does then


def in_own_order(bind: f.Bind, par: f.Par) -> f.Bind | None:
    """The nest with its two loops interchanged; None if it adds in the order of its places, or does something else."""
    if par.ordered or len(par.space) != 1 or [out.kind for out in par.outs] != ["add"] or not par.body.binds:
        return None
    *before, last = par.body.binds
    match last.rhs:
        case f.Par(((index, count),), body, (f.Out("add", acc=f.Var() as acc),)) as inner if not inner.ordered:
            pass
        case _:
            return None
    ((outer, _),) = par.space
    defined = {outer.name, *[var.name for one in before for var in one.vars]}  # its index, too: of a triangle
    if par.body.results != last.vars or len(before) > MOST or not all(map(is_little, before)):
        return None
    if not defined.isdisjoint(names((count,))) or inner.outs[0].target != par.outs[0].acc:
        return None
    chain = uses(body, acc, 0)
    own = [index, outer]
    if not chain or any(not adds_at(body.binds[at].rhs, own) for at in chain):
        return None
    rows = replace(inner, space=par.space, body=f.Block((*before, *body.binds), body.results))
    whole = replace(par, space=inner.space, body=f.Block((f.Bind(last.vars, rows),), last.vars))
    return f.Bind(bind.vars, whole)


def is_little(bind: f.Bind) -> bool:
    """True for arithmetic and reads that cannot fail."""
    op = bind.rhs
    return isinstance(op, f.Op) and (OPS[op.op].quick or (op.op == "index" and bool(op.attr("unchecked"))))


def adds_at(rhs: f.Rhs, places: list[f.Var]) -> bool:
    return isinstance(rhs, f.Op) and rhs.attr("rank") == 2 and list(rhs.args[4:]) == places
