"""The least or greatest of what a Par's points compute in a loop each: the loop has the best so far as its state.

    r = par c < 16 to keep { ...; yield x }            y = for c < 16 state (b = inf) {
    i = argmin r;  y = index r i;  drop r        =>      ...; u = min b x
                                                         yield u }

The value is that of the first least number, or of the first NaN, as with `argmin`.  So points can be computed in lanes.
What else reads the array, as the sum of a `logsumexp` does, reads what the loop has collected; else nothing is kept.

If the place is asked for as well, as by the derivative of a search, it is another state, in floats, as lanes have them:

    here = cast c;  now = or (lt x b) (and (ne x x) (eq b b));  there = select now here at

What computes the number at this place again, from what the points of the array read, is the value, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import rhs_mentions, with_rhs
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
    """The place of a number, and what it is there; `choose` is `min` or `max`.  The array is `kept` where others read
    its elements.  The place may be `told`.  The bindings of what is `gone` are not needed."""

    choose: str
    place: f.Var
    value: f.Var
    kept: bool
    told: bool
    gone: frozenset[str]


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
    if first is None:
        return None
    place = first.vars[0]
    again = computed_again(par, binds, place)
    item = par.body.results[0]
    last = next((one for one in readers if is_read(one.rhs, array, place)), None) or again.get(item)
    others = [one for one in readers if one is not first and one is not last]
    if array in outer.body.results or not all(reads_elements(one.rhs, array) for one in others):
        return None
    value = last.vars[0] if last else f.Var(f"{array.name} best", item.ty)
    gone, left = {place.name, value.name}, [one for one in binds if one is not last]
    for one in reversed(again.values()):
        used = {name for other in left if other is not one for name in rhs_mentions(other.rhs)}
        if one is not last and one.vars[0].name not in used and one.vars[0] not in outer.body.results:
            left.remove(one)
            gone.add(one.vars[0].name)
    told = place in outer.body.results or any(place.name in rhs_mentions(one.rhs) for one in left if one is not first)
    if others and not is_few(count):
        return None
    choose = OPS[expect_type(f.Op, first.rhs).op].finds
    return Search(choose, place, value, bool(others), told, frozenset(gone))


def computed_again(par: f.Par, binds: Sequence[f.Bind], place: f.Var) -> dict[f.Atom, f.Bind]:
    """What computes the numbers of a Par's body for the point `place`: the bindings, by these numbers."""
    same: dict[f.Atom, f.Atom] = {par.space[0][0]: place}
    found: dict[f.Atom, f.Bind] = {}
    ops = {(op.op, op.args, op.attrs): bind for bind in binds if isinstance(op := bind.rhs, f.Op) and bind.vars}
    for bind in par.body.binds:
        if isinstance(op := bind.rhs, f.Op) and bind.vars:
            there = ops.get((op.op, tuple([same.get(a, a) for a in op.args]), op.attrs))
            if there is not None:
                same[bind.vars[0]] = there.vars[0]
                found[bind.vars[0]] = there
    return found


def is_read(rhs: f.Rhs, array: f.Var, at: f.Var) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "index" and rhs.args == (array, at)


def with_loop(binds: Sequence[f.Bind], bind: f.Bind, par: f.Par, search: Search) -> tuple[f.Bind, ...]:
    """The bindings, with a loop in place of another Par and the search in what it keeps."""
    ((index, count),), (item,) = par.space, par.body.results
    (array,), value = bind.vars, search.value
    best, after = (f.Var(f"{array.name} {when}", value.ty) for when in ("before", "after"))
    start = -inf if search.choose == "max" else inf
    choose = f.Bind((after,), f.Op(search.choose, (best, item), (), par.span))
    rows = f.Var(f"{array.name} rows", f.Arr(f.Tup((item.ty,)), 1))
    state, inits, variables, step = [best], [f.Const(start, value.ty)], [value], [*par.body.binds, choose]
    results, places = [after], list[f.Bind]()
    if search.told:
        at, there, last = (f.Var(f"{array.name} place {when}", f.F64) for when in ("before", "after", "last"))
        step += found_at(search.choose, best, item, index, at, there)
        state, inits, variables, results = [best, at], [*inits, f.Const(0.0, f.F64)], [value, last], [after, there]
        places = [f.Bind((search.place,), f.Op("cast", (last,), (("to", "i64"),)))]
    if search.kept:
        variables, results = [*variables, rows], [*results, item]
        binds = [one if one is bind else with_rhs(one, from_rows(one.rhs, array, rows, 0)) for one in binds]
    body = f.Block(tuple(step), tuple(results))
    made = f.For(index, count, tuple(state), tuple(inits), body, int(search.kept))
    loop = [f.Bind(tuple(variables), made), *places]
    gone = search.gone
    kept = [one for one in binds if one is bind or not (gone & {v.name for v in one.vars} or is_drop(one.rhs, array))]
    drops = [f.Bind((), f.Op("drop", (rows,)))] if search.kept else []
    return (*[new for one in kept for new in (loop if one is bind else [one])], *drops)


def found_at(choose: str, best: f.Var, item: f.Atom, index: f.Var, at: f.Var, there: f.Var) -> list[f.Bind]:
    """The place `there` of the best number so far, which was `at` before the number `item`."""
    better, odd, first, found, found_now = (f.Var(f"{there.name} {k}", f.BOOL) for k in range(5))
    here = f.Var(f"{there.name} here", f.F64)
    return [
        f.Bind((better,), f.Op("gt" if choose == "max" else "lt", (item, best))),
        f.Bind((odd,), f.Op("ne", (item, item))),
        f.Bind((first,), f.Op("eq", (best, best))),
        f.Bind((found,), f.Op("and", (odd, first))),
        f.Bind((found_now,), f.Op("or", (better, found))),
        f.Bind((here,), f.Op("cast", (index,), (("to", "f64"),))),
        f.Bind((there,), f.Op("select", (found_now, here, at))),
    ]
