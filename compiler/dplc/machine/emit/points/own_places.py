"""Places at which each point of a loop adds alone: at the indices of the loop, or at these and a number from outside.

par t < n to add (c) { k = add t s; acc_index c x m k }       no two points add to one place
par t < n to add (c) { acc_index c x m t; k = add t s         points t + s and t may add to one
                       acc_index c y m k }
par t, u to add (c) { k = add t u; acc_index c x m k }        so may the points (0, 1) and (1, 0)
"""

from __future__ import annotations

from collections.abc import Iterable

from dplc.flat import term as f
from dplc.flat.walk import bound_inside, every, names

Told = tuple[int, tuple[str, f.Atom] | None]  # the number of a place that an index tells, and what moves it


def adds_apart(par: f.Par, accs: Iterable[str]) -> bool:
    """True if no two points add to one place of an array, which these variables hold during a point: all of its
    additions tell each index at the same place, in the same way."""
    held = set(accs)
    inside = {var.name for var in bound_inside(par)}
    defined = {var.name: bind.rhs for bind in every(par.body) for var in bind.vars}
    moved = {name: rhs for name, rhs in defined.items() if isinstance(rhs, f.Op) and rhs.op in ("add", "sub")}
    first: list[Told | None] | None = None
    for bind in every(par.body):
        if not isinstance(bind.rhs, f.Op) or bind.rhs.op in ("dim", "index"):
            continue
        if not held.isdisjoint(names(bind.rhs.args[:1])):
            told = [told_by(index, bind.rhs.args[2:], moved, inside) for index, _ in par.space]
            if None in told or told != (first or told):
                return False
            first = told
    return True


def told_by(index: f.Var, places: tuple[f.Atom, ...], moved: dict[str, f.Op], inside: set[str]) -> Told | None:
    """The first place that is an index, or that and a number which the points do not compute."""
    for k, place in enumerate(places):
        if place == index:
            return k, None
        op = moved.get(place.name) if isinstance(place, f.Var) else None
        if op is None or index not in op.args:
            continue
        one, other = op.args if op.args[0] == index or op.op == "sub" else op.args[::-1]
        if one == index and inside.isdisjoint(names((other,))):
            return k, (op.op, other)
    return None
