"""Ranges of the whole numbers that arrays hold, and of those that are one of several: for checks of indices.

    at = build i < n { k = argmin d; yield k }          d has 16 elements: those of `at` are natural and less than 16
    j = index at i                                      so is j
    m = select c j 3                                    and m

An index that a program finds and keeps, as the cluster of each point or the word at each place, is in bounds where it
is used (value range propagation, Patterson 1995, through arrays).  Only ranges from 0 to a constant are followed; what
updates an array is not.
"""

from __future__ import annotations

from collections.abc import Iterable

from dplc.flat import term as f
from dplc.flat.affine import DEEP, LARGEST, ONE, Affine, combined
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of


class ElementRanges:
    """The ranges in a function.  `limits` has, by arrays of natural numbers, what all of them are less than; those of
    numbers are in `affine.counts`, as if they were indices of loops."""

    def __init__(self, affine: Affine) -> None:
        self.affine = affine
        self.limits: dict[str, int] = {}

    def define(self, bind: f.Bind) -> None:
        """Notes the range of what a right-hand side gives, once what is in it has been looked at."""
        match bind.rhs:
            case f.Op("select", (_, *arms)) | f.Op("array", arms):
                self.note(bind.vars[0], arms)
            case f.Op("fill", (_, *value)):
                self.note(bind.vars[0], value)
            case f.Op(op, (f.Var() as array, *_)) if array.name in self.limits and (op == "index" or OPS[op].views):
                self.note(bind.vars[0], (array,))
            case f.If(_, then, other):
                for k, var in enumerate(bind.vars):
                    self.note(var, (then.results[k], other.results[k]))
            case f.Build(body=body):
                for var, result in zip(bind.vars, body.results, strict=True):
                    self.note(var, (result,))
            case f.Op("argsort" | "iota"):
                self.places(bind.vars[0])
            case _:
                pass

    def note(self, var: f.Var, parts: Iterable[f.Atom]) -> None:
        """Notes the range of a number that is one of the parts, or of an array that has them or their elements."""
        if not is_whole(var):
            return
        limits = [self.limit(part) for part in parts]
        known = [n for n in limits if n is not None]
        if not known or len(known) < len(limits):
            return
        if isinstance(var.ty, f.Arr):
            self.limits[var.name] = max(known)
        else:
            self.affine.counts[var.name] = {ONE: max(known)}

    def places(self, order: f.Var) -> None:
        """Notes that an array has the places of as many elements as it has."""
        length = self.affine.dims.of(order, 0)
        if isinstance(length, f.Const) and isinstance(length.value, int):
            self.limits[order.name] = length.value

    def limit(self, atom: f.Atom) -> int | None:
        """What a number, or all elements of an array, are less than, if they are natural; None if that is not known."""
        if isinstance(atom.ty, f.Arr):
            return self.limits.get(atom.name) if isinstance(atom, f.Var) else None
        above = self.above(atom)
        fine = above is not None and above < LARGEST and self.affine.holds(atom, self.affine.is_natural, "max")
        return above if fine else None

    def above(self, atom: f.Atom, deep: int = 0) -> int | None:
        """A constant that a number is less than.  Numbers that are cut off must not overflow."""
        cut = self.affine.cuts.get(atom.name) if isinstance(atom, f.Var) and deep < DEEP else None
        if cut is not None:
            found = [self.above(x, deep + 1) for x in cut.args]
            known = [n for n in found if n is not None]
            return min(known, default=None) if cut.op == "min" else max(known) if len(known) == len(found) else None
        total = self.affine.sum(atom)
        least = self.affine.least(combined({}, total, -1))
        certain = set(least) <= {ONE} and (deep == 0 or self.affine.is_exact(total))
        return 1 - least.get(ONE, 0) if certain else None


def is_whole(var: f.Var) -> bool:
    """True for an `int`, and for an array of them."""
    return var.ty == f.I64 or (isinstance(var.ty, f.Arr) and elem_of(var.ty) == f.I64)
