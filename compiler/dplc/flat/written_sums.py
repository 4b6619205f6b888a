"""Sums of whole numbers (`affine.py`) as code."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum
from dplc.flat.build import Builder, integer


def written(b: Builder, affine: Affine, total: Sum) -> f.Atom:
    """The number that a sum is; what is added comes first."""
    made: f.Atom = integer(total.get(ONE, 0))
    for term, factor in sorted(total.items(), key=lambda item: -item[1]):
        if term == ONE:
            continue
        value: f.Atom = f.Var(str(term), f.I64)
        if isinstance(term, tuple):
            value = b.op("dim", (affine.arrays[term[0]],), k=term[1])
        if abs(factor) != 1:
            value = b.op("mul", (integer(abs(factor)), value))
        first = made == integer(0) and factor > 0
        made = value if first else b.op("add" if factor > 0 else "sub", (made, value))
    return made
