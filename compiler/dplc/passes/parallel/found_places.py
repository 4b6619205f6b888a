"""Reads at places that points find in arrays are checked together, before the points.

    par o < n {                                  m = par o < n { i = index unchecked k o
      i = index k o                                              yield select (i < 0 or i >= dim a) 1 0 } to fold
      x = index a i                      =>      if m > 0 { what can fail, as before }
      ... }                                      par o < n { i = index k o; x = index unchecked a i; ... }

So points with much arithmetic are computed in vectors, which gather what they read.  Of places side by side, as those
of a spline, the first and the last one are checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import record, replace

from dplc.flat import term as f
from dplc.flat.affine import ONE, Sum
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every, names, needed
from dplc.passes.simplify.purity import droppable

MUCH = 8  # cheap operations on floats, or others that cost as much: the least for which vectors pay
DEAR = 8  # cheap operations that one of the others costs


@record
class Found:
    """A read whose index in dimension `k` of `array`, from outside, is found by the point itself; `at` is the index as
    a sum."""

    read: f.Op
    index: f.Atom
    array: f.Var
    k: int
    at: Sum


def is_much(par: f.Par) -> bool:
    """True for points with much arithmetic, and without calls and loops."""
    work = 0
    for bind in every(par.body):
        match bind.rhs:
            case f.Op(op) if len(bind.vars) == 1 and f.is_float(bind.vars[0].ty) and op != "index":
                work += 1 if OPS[op].cheap else DEAR
            case f.Op("cast", (x,)) if f.is_float(x.ty):
                work += 1
            case f.Op() | f.If() | f.TupGet() | f.TupMake():
                pass
            case _:
                return False
    return work >= MUCH


def indices(par: f.Par, found: Sequence[Found]) -> tuple[f.Bind, ...] | None:
    """What a point does to find these places; None if this may fail after the other checks."""
    code, late = needed(par.body.binds, names([one.index for one in found])), {id(one.read) for one in found}

    def is_first(rhs: f.Rhs) -> bool:
        return id(rhs) not in late and ((isinstance(rhs, f.Op) and rhs.op == "index") or droppable(rhs))

    return tuple(code) if all(is_first(bind.rhs) for bind in code) else None


def side_by_side(found: Sequence[Found]) -> list[tuple[Found, int]]:
    """The first of each group of places that differ by constants, and how far the last one is from it."""
    groups: dict[object, list[Found]] = {}
    for one in found:
        apart = frozenset((term, factor) for term, factor in one.at.items() if term != ONE)
        groups.setdefault((one.array, one.k, apart), []).append(one)
    ordered = [sorted(group, key=lambda one: one.at.get(ONE, 0)) for group in groups.values()]
    return [(group[0], group[-1].at.get(ONE, 0) - group[0].at.get(ONE, 0)) for group in ordered]


def outside(b: Builder, par: f.Par, found: Sequence[Found], finds: tuple[f.Bind, ...]) -> f.Var:
    """True if one of these places is not inside of its array."""
    with b.inside() as binds:
        bad = None
        for first, width in side_by_side(found):
            length = b.op("dim", (first.array,), k=first.k)
            end = b.op("sub", (length, integer(width))) if width else length
            for wrong in (b.op("lt", (first.index, integer(0))), b.op("ge", (first.index, end))):
                bad = wrong if bad is None else b.op("or", (bad, wrong))
        assert bad is not None
        number = b.op("select", (bad, integer(1), integer(0)))
    body = block_of([*finds, *binds], (number,))
    count = Copier(b.supply, {}).rhs(replace(par, body=body, outs=(f.Out("fold"),)))
    return b.op("gt", (b.one(count, f.I64), integer(0)))
