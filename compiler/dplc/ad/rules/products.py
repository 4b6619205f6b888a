"""Products of arrays where one factor is a tangent with symbolic zeros.  These zeros contribute nothing, even if the
other factor is infinite there (0.0 * inf is NaN).

    matmul c w, c a tangent with symbolic zeros       if w is finite then matmul c w else matmul.masked c w

The other factor is nearly always finite, which a sum of its absolute values shows.  Otherwise a loop computes the
product.
"""

from __future__ import annotations

from math import inf

from dpl.source import Span

from dplc.ad.builder import Builder
from dplc.ad.rules import bulk
from dplc.ad.tangents.convert import Conversions
from dplc.ad.tangents.symbolic_zeros import Part
from dplc.ad.tangents.types import zero
from dplc.flat import term as f
from dplc.flat.types import elem_of

Factors = tuple[f.Atom, f.Atom, bool, bool]  # left, right, and whether they are transposed first


def matmul(
    convert: Conversions, b: Builder, factors: Factors, factor: int | None, into: f.Atom | None, span: Span
) -> f.Var:
    """A matrix product, added to `into` if that is given.  Factor number `factor` has symbolic zeros."""

    def product(b: Builder) -> f.Var:
        left, right, ta, tb = factors
        if into is None:
            return b.op("matmul", left, right, ta=ta, tb=tb, span=span)
        return b.op("matmul_acc", into, left, right, ta=ta, tb=tb, span=span)

    if factor is None:
        return product(b)
    plain, by_hand = b.inner(), b.inner()
    made = product(plain)
    size = b.op("sum_to", b.op("abs", factors[:2][1 - factor]), rank=0)
    part = masked(convert, by_hand, factors, factor, made.ty)
    total = part if into is None else by_hand.op("acc_add", into, part)
    finite = b.op("lt", size, f.Const(inf, size.ty))
    return b.choose(finite, plain.block(made), by_hand.block(total))[0]


def masked(convert: Conversions, b: Builder, factors: Factors, factor: int, ty: f.Type) -> f.Var:
    left, right, ta, tb = factors

    def write(b: Builder, left: f.Var, right: f.Var) -> f.Atom:
        (rows, inner), (_, columns) = order(b.dims(left), ta), order(b.dims(right), tb)
        i, j, k = (b.fresh(name, f.I64) for name in "ijk")
        total = b.fresh("total", elem_of(ty))
        row, cell, term = b.inner(), b.inner(), b.inner()
        pair = term.op("index", left, *order((i, k), ta)), term.op("index", right, *order((k, j), tb))
        part = bulk.masked(term, pair[factor], term.op("mul", *pair))
        step = term.block(term.op("add", total, part))
        last = cell.bind((total.ty,), f.For(k, inner, (total,), (zero(total.ty),), step))
        line = row.bind((f.Arr(elem_of(ty), 1),), f.Build(j, columns, cell.block(*last)))
        (made,) = b.bind((ty,), f.Build(i, rows, row.block(*line)))
        return b.op("reshape", made, rows, columns)

    name = convert.helper(f"matmul{ta:d}{tb:d}{factor}.masked", left.ty, (left.ty, right.ty), ty, write)
    return b.call(name, (left, right), (ty,))[0]


def order(pair: tuple[f.Var, ...], swapped: bool) -> tuple[f.Var, ...]:
    return pair[::-1] if swapped else pair


def dot(b: Builder, t: Part, other: f.Atom, span: Span) -> f.Var:
    if not t.has_zeros:
        return b.op("dot", t.atom, other, span=span)
    return b.op("sum", bulk.masked(b, t.atom, b.op("mul", t.atom, other, span=span)))
