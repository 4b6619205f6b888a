"""Where NaN goes: the operations whose result is NaN if an operand is."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.ops.table import OPS


def passes_nan(op: f.Op) -> bool:
    """True if the result of an operation on numbers is NaN where an operand is: arithmetic, and functions of one
    number that have a derivative."""
    row = OPS[op.op]
    if row.scalar is None:
        return op.op == "acc_add"
    slope = row.derivative
    return bool(slope.flows) and not slope.chooses and (slope.algebraic or len(op.args) == 1)
