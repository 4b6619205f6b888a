"""The least or greatest of what a Par's points compute in a loop each: the loop has the best so far as its state.

    r = par c < 16 to keep { ...; yield x }            y = for c < 16 state (b = inf) {
    i = argmin r;  y = index r i;  drop r        =>      ...; u = min b x
                                                         yield u }

The value is that of the first least number, or of the first NaN, as with `argmin`.  So points can be computed in lanes,
and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import names, rhs_mentions


def with_least_values(par: f.Par, binds: Sequence[f.Bind]) -> Sequence[f.Bind]:
    """The bindings of a Par's points, with loops in place of arrays whose least or greatest number is all that is
    read; the same object if there are none."""
    for bind in binds:
        if isinstance(bind.rhs, f.Par) and (search := search_in(par, binds, bind, bind.rhs)) is not None:
            binds = with_loop(binds, bind, bind.rhs, search)
    return binds


@node
class Search:
    """The bindings that find the place of a number and read it there; `choose` is `min` or `max`."""

    choose: str
    place: f.Bind
    value: f.Bind


def search_in(outer: f.Par, binds: Sequence[f.Bind], bind: f.Bind, par: f.Par) -> Search | None:
    """The search in what a Par keeps, if nothing else is done with that, and there is something to find."""
    (*_, count) = par.space[-1]
    some = isinstance(count, f.Const) and isinstance(count.value, int) and count.value > 0
    kept = [(out.kind, out.target) for out in par.outs] == [("keep", None)]
    if par.ordered or len(par.space) != 1 or not (some and kept) or not f.is_float(par.body.results[0].ty):
        return None
    (array,) = bind.vars
    found = [one for one in binds if one is not bind and array.name in rhs_mentions(one.rhs)]
    match [one for one in found if one.vars]:
        case [f.Bind((place,), f.Op(op, (_,))) as first, f.Bind(_, f.Op("index", (_, at))) as last] if at == place:
            used = sum(place.name in rhs_mentions(one.rhs) for one in binds)
            known = used == 1 and not {array.name, place.name} & set(names(outer.body.results))
            return Search(OPS[op].finds, first, last) if known and OPS[op].finds else None
        case _:
            return None


def with_loop(binds: Sequence[f.Bind], bind: f.Bind, par: f.Par, search: Search) -> tuple[f.Bind, ...]:
    """The bindings, with a loop in place of another Par and the search in what it keeps."""
    ((index, count),), (item,) = par.space, par.body.results
    (array,), (value,) = bind.vars, search.value.vars
    best, after = (f.Var(f"{array.name} {when}", value.ty) for when in ("before", "after"))
    start = -inf if search.choose == "max" else inf
    choose = f.Bind((after,), f.Op(search.choose, (best, item), (), par.span))
    step = f.Block((*par.body.binds, choose), (after,))
    loop = f.Bind((value,), f.For(index, count, (best,), (f.Const(start, value.ty),), step))
    kept = [one for one in binds if one is bind or not (one is search.place or array.name in rhs_mentions(one.rhs))]
    return tuple([loop if one is bind else one for one in kept])
