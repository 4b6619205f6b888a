"""Whether all rows of a comprehension have one shape.  An unused comprehension goes only if they do.

build i < n { yield mul (index xs i) w }      the shape of row 0 of xs: yes
build i < 2 { yield if c then xs else ys }    the shape of xs or of ys: not known
"""

from __future__ import annotations

from collections.abc import Iterable

from dplc.flat import term as f
from dplc.flat.dims import Dims, dims_of, inside, names_inside
from dplc.flat.types import rank_of


def one_shape(rhs: f.Build | f.Par, dims: Dims | None = None) -> bool:
    """True if no array is kept, and if the dimensions of those that are do not depend on the index, as far as its body,
    or `dims` of the function, tells."""
    return not differing(rhs, range(len(rhs.body.results)), dims)


def differing(rhs: f.Build | f.Par, results: Iterable[int], dims: Dims | None = None) -> set[int]:
    """Those of some results that keep rows which may have other shapes: to keep them is to compare these."""
    kept = [k for k in results if isinstance(rhs, f.Build) or rhs.outs[k].kind == "keep"]
    rows = {k: row for k in kept if rank_of((row := rhs.body.results[k]).ty)}
    if not rows:
        return set()
    dims, names = dims or dims_of(rhs.body), names_inside(rhs)
    return {n for n, row in rows.items() if any(inside(dims.of(row, k), names) for k in range(rank_of(row.ty)))}
