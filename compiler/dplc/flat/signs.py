"""Numbers that are never -0.0, found by how they are made.

    add x 0.0: never        acc_index null v 3 0: never        mul x y: perhaps

A sum in IEEE arithmetic is -0.0 only if both operands are.  What loops add up is not asked for: later passes keep it
without the zero that it begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign

from dplc.flat import term as f


def zeros_positive(x: f.Atom, defs: Mapping[str, f.Rhs]) -> bool:
    """True if no number in `x`, a float or an array of floats, is -0.0.  Null has no numbers.  `defs` has the
    right-hand sides that bind a single variable."""
    if isinstance(x, f.Const):
        return not isinstance(x.value, float) or copysign(1.0, x.value) > 0.0 or x.value != 0.0
    match defs.get(x.name):
        case f.Op("sum" | "dot" | "matmul"):  # they begin with 0.0
            return True
        case f.Op("add", (a, b)):
            return zeros_positive(b, defs) or zeros_positive(a, defs)
        case f.Op("acc_add", (a, b)):  # either may be null, or 0.0 that is not added
            return zeros_positive(a, defs) and zeros_positive(b, defs)
        case f.Op("fill", (_, a)):
            return zeros_positive(a, defs)
        case f.Op("acc_index" | "acc_zeros" | "copy" | "transpose" | "reshape" | "slice" | "index", (a, *_)):
            return zeros_positive(a, defs)
        case f.Op("matmul_acc", (c, *_)):  # products are sums that begin with 0.0
            return zeros_positive(c, defs)
        case _:
            return False
