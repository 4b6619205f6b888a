"""Whether all rows of a comprehension have one shape.  An unused comprehension goes only if they do.

build i < n { yield mul (index xs i) w }      the shape of row 0 of xs: yes
build i < 2 { yield if c then xs else ys }    the shape of xs or of ys: not known
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.dims import dims_of, inside, names_inside
from dplc.flat.types import rank_of


def one_shape(build: f.Build) -> bool:
    """True for elements that are no arrays, and for arrays whose dimensions do not depend on the index."""
    rows = [row for row in build.body.results if rank_of(row.ty)]
    if not rows:
        return True
    dims, names = dims_of(build.body), names_inside(build)
    return not any(inside(dims.of(row, k), names) for row in rows for k in range(rank_of(row.ty)))
