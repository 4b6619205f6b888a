"""Sums of rows of few numbers, in a Par's points: a loop that has the sum of each column in a variable.

    r = par b < 22 to keep of (2) { ...            s0, s1 = for b < 22 state (t0 = 0.0, t1 = 0.0) {
      a = array x y; yield a }               =>      ...; u0 = add t0 x; u1 = add t1 y
    s = sum r; drop r                                yield u0, u1 }
    z = index s 1; drop s                          z is s1

Sums of rows add up each column in order, and those of blocks in order (`dpl/prims/sums.py`): rows that may be more than
a block are a loop of such loops.  So points can be computed in lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpl.node import node, replace
from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.flat.walk import rhs_mentions, with_binds
from dplc.machine.emit.points.rows import Row, in_pieces
from dplc.passes.simplify.purity import natural


def with_row_sums(par: f.Par) -> f.Par:
    """The Par, with loops in place of the sums of rows in its points."""
    body = par.body
    for bind in body.binds:
        if isinstance(bind.rhs, f.Par) and (sums := sums_of(par, body, bind, bind.rhs)) is not None:
            body = with_loop(body, bind, bind.rhs, sums)
    return par if body is par.body else replace(par, body=body)


@node
class Total:
    """The sum of the rows that a Par makes of one result, the variables that its numbers are read into, and whether the
    point gives it."""

    rows: f.Var
    row: Row
    var: f.Var
    read: dict[int, f.Var]
    given: bool


def sums_of(whole: f.Par, body: f.Block, bind: f.Bind, par: f.Par) -> list[Total] | None:
    """The sums of a Par's rows, if nothing else is done with these, and their number is no error: it is known, or that
    of the points."""
    plain = all(out.kind == "keep" and not out.target for out in par.outs)
    if par.ordered or not plain or len(par.space) != 1:
        return None
    count = par.space[0][1]
    if not natural(count) and count not in [points for _, points in whole.space]:
        return None
    _, pieces = in_pieces(par)
    found = [total_of(body, rows, pieces[k]) for k, rows in enumerate(bind.vars) if k in pieces and pieces[k].shape]
    totals = [total for total in found if total is not None]
    return totals if len(totals) == len(bind.vars) else None


def total_of(body: f.Block, rows: f.Var, row: Row) -> Total | None:
    """The sum of rows, if nothing else reads them, and the point reads single numbers of it, or gives it."""
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
    return None if var is None or rows in body.results else Total(rows, row, var, read, var in body.results)


def with_loop(body: f.Block, bind: f.Bind, par: f.Par, totals: Iterable[Total]) -> f.Block:
    """The body of a Par's points, with a loop in place of another Par and the sums of its rows."""
    inner, _ = in_pieces(par)
    ((index, count),) = par.space
    state, adds, variables, given, gone = [], [], [], [], set[str]()
    for total in totals:
        gone |= {total.rows.name, total.var.name}
        first = len(variables)
        for k, x in enumerate(total.row.items):
            name = f"{total.rows.name} {k}"
            state.append(before := f.Var(f"{name} before", x.ty))
            adds.append(f.Bind((f.Var(f"{name} after", x.ty),), f.Op("add", (before, x), (), par.span)))
            variables.append(total.read.get(k, f.Var(name, x.ty)))
        if total.given:
            given.append(f.Bind((total.var,), f.Op("array", tuple(variables[first:]))))
    step = f.Block((*inner, *adds), tuple([add.vars[0] for add in adds]))
    if isinstance(count, f.Const) and isinstance(count.value, int) and count.value <= BLOCK:
        loop = [f.Bind(tuple(variables), f.For(index, count, tuple(state), zeros_of(state), step))]
    else:
        loop = in_blocks(tuple(variables), index, count, state, step)
    kept = [one for one in body.binds if one is bind or gone.isdisjoint(rhs_mentions(one.rhs))]
    return with_binds(body, [made for one in kept for made in ((*loop, *given) if one is bind else (one,))])


def in_blocks(
    variables: tuple[f.Var, ...], index: f.Var, count: f.Atom, state: Sequence[f.Var], step: f.Block
) -> list[f.Bind]:  # fmt: skip
    """A loop over blocks of rows that adds up the sums of their columns."""
    size = f.Const(BLOCK, f.I64)
    words = "last", "blocks", "block", "start", "left", "steps", "at"
    last, blocks, block, start, left, steps, at = [f.Var(f"{index.name} {word}", f.I64) for word in words]
    totals = [f.Var(f"{var.name} so far", var.ty) for var in state]
    sums = [f.Var(f"{var.name} of block", var.ty) for var in state]
    after = [f.Var(f"{var.name} with block", var.ty) for var in state]
    place = f.Bind((index,), f.Op("add", (start, at)))
    rows = f.For(at, steps, tuple(state), zeros_of(state), f.Block((place, *step.binds), step.results))
    body = (
        f.Bind((start,), f.Op("mul", (block, size))),
        f.Bind((left,), f.Op("sub", (count, start))),
        f.Bind((steps,), f.Op("min", (left, size))),
        f.Bind(tuple(sums), rows),
        *[f.Bind((new,), f.Op("add", (old, one))) for new, old, one in zip(after, totals, sums, strict=True)],
    )
    return [
        f.Bind((last,), f.Op("add", (count, f.Const(BLOCK - 1, f.I64)))),
        f.Bind((blocks,), f.Op("div", (last, size))),
        f.Bind(variables, f.For(block, blocks, tuple(totals), zeros_of(state), f.Block(body, tuple(after)))),
    ]


def zeros_of(state: Sequence[f.Var]) -> tuple[f.Const, ...]:
    return tuple([f.Const(0.0, var.ty) for var in state])
