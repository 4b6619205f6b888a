"""Taylor series -> the coefficients that the user sees."""

from __future__ import annotations

from collections.abc import Sequence

from dplc.ad.tangents.convert import Conversions
from dplc.ad.tangents.types import positive, zero
from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.types import of_rank


class Coefficients(Conversions):
    """From series to values for the user, of the result's type, with coefficients in place of the floats."""

    to_user = "coefficient"

    def all(self, b: Builder, series: Sequence[f.Atom | None], y: f.Var, order: f.Atom, there: f.Atom) -> f.Var:
        """An array: y, then its coefficients of the orders 1 to `order`.  A series, if there is one, has `there`
        coefficients."""
        if f.is_float(y.ty):
            full = b.op("acc_zeros", (series[0] or zero(of_rank(y.ty, 1)), there))
            found = b.op("slice", (full, integer(0), order), unchecked=True)
            return b.op("concat", (b.op("array", (y,)), positive(b, found)))
        index, inner, later = b.var("k", f.I64), b.inner(), b.inner()
        before = later.op("sub", (index, integer(1)))
        if isinstance(y.ty, f.Arr) and f.is_float(y.ty.elem):
            full = self.full(b, series[0] or zero(of_rank(y.ty, 1)), y, there)  # once, not for each order
            made = later.block(self.at_order(later, full, y, before))
        else:
            made = later.block(self.from_tan(later, series, y, there, before))
        (found,) = inner.choose(inner.op("eq", (index, integer(0))), f.Block((), (y,)), made)
        count = b.op("add", (order, integer(1)))
        return b.bind(f.Build(index, count, inner.block(found)), (of_rank(y.ty, 1),))[0]

    def number(self, b: Builder, tangent: f.Atom | None, like: f.Atom, more: tuple[f.Atom, ...]) -> f.Atom:
        there, k = more
        full = b.op("acc_zeros", (tangent or zero(of_rank(like.ty, 1)), there))
        return positive(b, b.op("index", (full, k), unchecked=True))

    def numbers(self, b: Builder, tangent: f.Atom, like: f.Atom, more: tuple[f.Atom, ...]) -> f.Atom:
        there, k = more
        return self.at_order(b, self.full(b, tangent, like, there), like, k)

    def full(self, b: Builder, tangent: f.Atom, like: f.Atom, there: f.Atom) -> f.Atom:
        """The series of an array of floats, zeros if it has none."""
        return b.op("acc_zeros", (tangent, *b.dims(like), there))

    def at_order(self, b: Builder, full: f.Atom, like: f.Atom, k: f.Atom) -> f.Atom:
        return self.each(
            b, like, lambda inner, _, at: positive(inner, inner.op("index", (full, *at, k), unchecked=True))
        )
