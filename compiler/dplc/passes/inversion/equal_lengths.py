"""Lengths of accumulators that may be the counts of the loops that add to them: then the sums have a simpler form."""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum
from dplc.flat.walk import bound_inside, every, names


def counts_of_lengths(par: f.Par, affine: Affine) -> dict[str, f.Atom]:
    """The counts of loops that add at their index and a constant, by the lengths of what they add to, where it is not
    known whether both are equal, and they may be: not if every point adds behind its own place."""
    binds = every(par.body)
    for bind in binds:
        affine.define(bind)
    spaces = (par.space, *[bind.rhs.space for bind in binds if isinstance(bind.rhs, f.Par)])
    counts = {index.name: count for space in spaces for index, count in space}
    inside, always = {var.name for var in bound_inside(par)}, {id(bind) for bind in unconditional(par)}
    found: dict[str, f.Atom] = {}
    longer: set[str] = set()
    for bind in binds:
        for length, place in places_of(bind.rhs):
            total = affine.sum(place)
            at = [counts[str(term)] for term in total if term in counts]
            if len(at) != 1 or not isinstance(length, f.Var) or not inside.isdisjoint(names((length, at[0]))):
                continue
            if id(bind) in always and total.get(ONE, 0) > 0:
                longer.add(length.name)
            elif may_be_equal(affine.sum(length), affine.sum(at[0])):
                found[length.name] = at[0]
    return {length: count for length, count in found.items() if length not in longer}


def places_of(rhs: f.Rhs) -> list[tuple[f.Atom, f.Atom]]:
    """The lengths of an accumulator, each with the place where an element is added."""
    if not (isinstance(rhs, f.Op) and rhs.op == "acc_index"):
        return []
    rank, rest = rhs.attr("rank"), rhs.args[2:]
    return list(zip(rest[:rank], rest[rank:], strict=True)) if len(rest) == 2 * rank else []


def may_be_equal(a: Sum, b: Sum) -> bool:
    """True for a length of which nothing is known, and another one, beside a constant, or a constant."""
    others = [factor for term, factor in b.items() if term != ONE]
    return list(a.values()) == [1] and a.keys().isdisjoint(b) and others in ([], [1])


def unconditional(par: f.Par) -> Iterator[f.Bind]:
    """What every point of a nest does."""
    for bind in par.body.binds:
        yield bind
        if isinstance(bind.rhs, f.Par):
            yield from unconditional(bind.rhs)
