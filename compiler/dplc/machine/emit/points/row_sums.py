"""Sums of few rows of few numbers, in a Par's points: a loop that has the sum of each column in a variable.

    r = par b < 22 to keep of (2) { ...            s0, s1 = for b < 22 state (t0 = 0.0, t1 = 0.0) {
      a = array x y; yield a }               =>      ...; u0 = add t0 x; u1 = add t1 y
    s = sum r; drop r                                yield u0, u1 }
    z = index s 1; drop s                          z is s1

Sums of rows add up each column in order (`dpl/prims/sums.py`).  So points can be computed in lanes.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpl.node import node, replace
from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.flat.walk import rhs_mentions, with_binds
from dplc.machine.emit.points.rows import Row, in_pieces


def with_row_sums(par: f.Par) -> f.Par:
    """The Par, with loops in place of the sums of rows in its points."""
    body = par.body
    for bind in body.binds:
        if isinstance(bind.rhs, f.Par) and (sums := sums_of(body, bind, bind.rhs)) is not None:
            body = with_loop(body, bind, bind.rhs, sums)
    return par if body is par.body else replace(par, body=body)


@node
class Total:
    """The sum of the rows that a Par makes of one result, and the variables that its numbers are read into."""

    rows: f.Var
    row: Row
    var: f.Var
    read: dict[int, f.Var]


def sums_of(body: f.Block, bind: f.Bind, par: f.Par) -> list[Total] | None:
    """The sums of a Par's rows, if nothing else is done with these, and they are few."""
    plain = all(out.kind == "keep" and not out.target for out in par.outs)
    if par.ordered or not plain or len(par.space) != 1:
        return None
    count = par.space[0][1]
    if not (isinstance(count, f.Const) and isinstance(count.value, int) and count.value <= BLOCK):
        return None
    _, pieces = in_pieces(par)
    found = [total_of(body, rows, pieces[k]) for k, rows in enumerate(bind.vars) if k in pieces and pieces[k].shape]
    totals = [total for total in found if total is not None]
    return totals if len(totals) == len(bind.vars) else None


def total_of(body: f.Block, rows: f.Var, row: Row) -> Total | None:
    """The sum of rows, if nothing else reads them, and only single numbers of the sum are read."""
    var, read = None, dict[int, f.Var]()
    for bind in body.binds:
        mentioned = set(rhs_mentions(bind.rhs))
        match bind:
            case _ if rows.name not in mentioned and (var is None or var.name not in mentioned):
                pass
            case f.Bind((), f.Op("drop")):
                pass
            case f.Bind((f.Var(_, f.Arr(_, 1)) as total,), f.Op("sum", (one,))) if one == rows and var is None:
                var = total
            case f.Bind((number,), f.Op("index", (one, f.Const(int(k))))) if one == var and k not in read:
                read[k] = number
            case _:
                return None
    kept = rows in body.results or var in body.results
    return None if var is None or kept else Total(rows, row, var, read)


def with_loop(body: f.Block, bind: f.Bind, par: f.Par, totals: Iterable[Total]) -> f.Block:
    """The body of a Par's points, with a loop in place of another Par and the sums of its rows."""
    inner, _ = in_pieces(par)
    ((index, count),) = par.space
    state, adds, variables, gone = [], [], [], set[str]()
    for total in totals:
        gone |= {total.rows.name, total.var.name}
        for k, x in enumerate(total.row.items):
            name = f"{total.rows.name} {k}"
            state.append(before := f.Var(f"{name} before", x.ty))
            adds.append(f.Bind((f.Var(f"{name} after", x.ty),), f.Op("add", (before, x), (), par.span)))
            variables.append(total.read.get(k, f.Var(name, x.ty)))
    zeros = tuple([f.Const(0.0, var.ty) for var in state])
    step = f.Block((*inner, *adds), tuple([add.vars[0] for add in adds]))
    loop = f.Bind(tuple(variables), f.For(index, count, tuple(state), zeros, step))
    kept = [one for one in body.binds if one is bind or gone.isdisjoint(rhs_mentions(one.rhs))]
    return with_binds(body, [loop if one is bind else one for one in kept])
