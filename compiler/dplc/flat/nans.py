"""Where NaN goes: the operations whose result is NaN if an operand is."""

from __future__ import annotations

from collections.abc import Collection

from dplc.flat import term as f
from dplc.flat.ops.table import OPS


def tells_nan(op: f.Op, sound: Collection[str]) -> bool:
    """True if the result is false at NaN only: of x = x, and of several such, whose names are `sound`."""
    same = op.op == "eq" and op.args[0] == op.args[1]
    return same or (op.op == "and" and all(isinstance(a, f.Var) and a.name in sound for a in op.args))


def passes_nan(op: f.Op) -> bool:
    """True if the result of an operation on numbers is NaN where an operand is: arithmetic, and functions of one
    number that have a derivative."""
    row = OPS[op.op]
    if row.scalar is None:
        return op.op == "acc_add"
    slope = row.derivative
    return bool(slope.flows) and not slope.chooses and (slope.algebraic or len(op.args) == 1)
