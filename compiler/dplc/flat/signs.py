"""Numbers that are never -0.0, found by how they are made.

    add x 0.0: never        acc_index null v 3 0: never        mul x y: perhaps

A sum in IEEE arithmetic is -0.0 only if both operands are.  What loops add up is not asked for: later passes keep it
without the zero that it begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign

from dplc.flat import term as f
from dplc.flat.ops.table import OPS


def zeros_positive(x: f.Atom, defs: Mapping[str, f.Rhs]) -> bool:
    """True if no number in `x`, a float or an array of floats, is -0.0.  Null has no numbers.  `defs` has the
    right-hand sides that bind a single variable."""
    if isinstance(x, f.Const):
        return not isinstance(x.value, float) or copysign(1.0, x.value) > 0.0 or x.value != 0.0
    made = defs.get(x.name)
    return isinstance(made, f.Op) and OPS[made.op].positive(made, lambda operand: zeros_positive(operand, defs))
