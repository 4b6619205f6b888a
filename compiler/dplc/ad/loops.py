"""Changes to loops in both modes: more state, and splitting of collected arrays."""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.build import Builder


def with_states(
    rhs: f.For | f.While, states: Sequence[f.Var], inits: Sequence[f.Atom], body: f.Block, collect: int
) -> f.For | f.While:
    """The loop with more state and another body."""
    state, starts = (*rhs.state, *states), (*rhs.inits, *inits)
    match rhs:
        case f.For(index, count):
            return f.For(index, count, state, starts, body, collect)
        case f.While():
            return f.While(state, starts, rhs.cond, body, collect)


def split(b: Builder, both: f.Var, arrays: Sequence[f.Var], widths: Sequence[int | None]) -> None:
    """An array of tuples -> arrays of parts of the tuples.  Each part has so many items; None means one item, not as a
    tuple."""
    index, inner = b.var("i", f.I64), b.inner()
    tup = inner.op("index", (both, index), unchecked=True)
    at, parts = 0, []
    for width in widths:
        items = [inner.get(tup, k) for k in range(at, at + (width or 1))]
        parts.append(items[0] if width is None else inner.make(items))
        at += len(items)
    b.binds.append(f.Bind(tuple(arrays), f.Build(index, b.op("dim", (both,), k=0), inner.block(*parts))))
