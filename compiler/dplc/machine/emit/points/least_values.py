"""The least or greatest of what a Par's points compute in a loop each: the loop has the best so far as its state.

    r = par c < 16 to keep { ...; yield x }            y = for c < 16 state (b = inf) {
    i = argmin r;  y = index r i;  drop r        =>      ...; u = min b x
                                                         yield u }

The value is that of the first least number, or of the first NaN, as with `argmin`.  So points can be computed in lanes.
What else reads the array, as the sum of a `logsumexp` does, reads what the loop has collected; else nothing is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import names, rhs_mentions, with_rhs
from dplc.machine.emit.points.lane_loops import from_rows, is_drop, is_few, reads_elements
from dplc.narrow import expect_type


def with_least_values(par: f.Par, binds: Sequence[f.Bind]) -> Sequence[f.Bind]:
    """The bindings of a Par's points, with loops in place of arrays whose least or greatest number is all that is
    read; the same object if there are none."""
    for variables in [bind.vars for bind in binds if isinstance(bind.rhs, f.Par)]:
        bind = next(bind for bind in binds if bind.vars == variables)  # it may read what another loop keeps by now
        if isinstance(bind.rhs, f.Par) and (search := search_in(par, binds, bind, bind.rhs)) is not None:
            binds = with_loop(binds, bind, bind.rhs, search)
    return binds


@node
class Search:
    """The bindings that find the place of a number and read it there; `choose` is `min` or `max`.  The array is `kept`
    where others read its elements."""

    choose: str
    place: f.Bind
    value: f.Bind
    kept: bool


def search_in(outer: f.Par, binds: Sequence[f.Bind], bind: f.Bind, par: f.Par) -> Search | None:
    """The search in what a Par keeps, if that is only read besides, and there is something to find."""
    (*_, count) = par.space[-1]
    some = isinstance(count, f.Const) and isinstance(count.value, int) and count.value > 0
    kept = [(out.kind, out.target) for out in par.outs] == [("keep", None)]
    if par.ordered or len(par.space) != 1 or not (some and kept) or not f.is_float(par.body.results[0].ty):
        return None
    (array,) = bind.vars
    readers = [one for one in binds if one is not bind and one.vars and array.name in rhs_mentions(one.rhs)]
    first = next((one for one in readers if isinstance(op := one.rhs, f.Op) and OPS[op.op].finds), None)
    last = next((one for one in readers if first and is_read(one.rhs, array, first.vars[0])), None)
    if first is None or last is None:
        return None
    others = [one for one in readers if one is not first and one is not last]
    used = sum(first.vars[0].name in rhs_mentions(one.rhs) for one in binds)
    if used > 1 or {array.name, first.vars[0].name} & set(names(outer.body.results)):
        return None
    if not all(reads_elements(one.rhs, array) for one in others):
        return None
    if others and not is_few(count):
        return None
    return Search(OPS[expect_type(f.Op, first.rhs).op].finds, first, last, bool(others))


def is_read(rhs: f.Rhs, array: f.Var, at: f.Var) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "index" and rhs.args == (array, at)


def with_loop(binds: Sequence[f.Bind], bind: f.Bind, par: f.Par, search: Search) -> tuple[f.Bind, ...]:
    """The bindings, with a loop in place of another Par and the search in what it keeps."""
    ((index, count),), (item,) = par.space, par.body.results
    (array,), (value,) = bind.vars, search.value.vars
    best, after = (f.Var(f"{array.name} {when}", value.ty) for when in ("before", "after"))
    start = -inf if search.choose == "max" else inf
    choose = f.Bind((after,), f.Op(search.choose, (best, item), (), par.span))
    rows = f.Var(f"{array.name} rows", f.Arr(f.Tup((item.ty,)), 1))
    variables, step = (value,), f.Block((*par.body.binds, choose), (after,))
    if search.kept:
        variables, step = (value, rows), replace(step, results=(after, item))
        binds = [one if one is bind else with_rhs(one, from_rows(one.rhs, array, rows, 0)) for one in binds]
    made = f.For(index, count, (best,), (f.Const(start, value.ty),), step, int(search.kept))
    loop = f.Bind(variables, made)
    gone = {search.place.vars[0].name, value.name}
    kept = [one for one in binds if one is bind or not (gone & {v.name for v in one.vars} or is_drop(one.rhs, array))]
    drops = [f.Bind((), f.Op("drop", (rows,)))] if search.kept else []
    return (*[loop if one is bind else one for one in kept], *drops)
