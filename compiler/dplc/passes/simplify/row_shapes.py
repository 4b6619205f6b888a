"""Whether all rows of a comprehension have one shape.  An unused comprehension goes only if they do.

build i < n { yield mul (index xs i) w }      the shape of row 0 of xs: yes
build i < 2 { yield if c then xs else ys }    the shape of xs or of ys: not known
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.dims import Dims, dims_of, inside, names_inside
from dplc.flat.types import rank_of


def one_shape(rhs: f.Build | f.Par, dims: Dims | None = None) -> bool:
    """True if no array is kept, and if the dimensions of those that are do not depend on the index, as far as its body,
    or `dims` of the function, tells."""
    kept = [isinstance(rhs, f.Build) or rhs.outs[k].kind == "keep" for k in range(len(rhs.body.results))]
    rows = [row for row, keeps in zip(rhs.body.results, kept, strict=True) if keeps and rank_of(row.ty)]
    if not rows:
        return True
    dims, names = dims or dims_of(rhs.body), names_inside(rhs)
    return not any(inside(dims.of(row, k), names) for row in rows for k in range(rank_of(row.ty)))
