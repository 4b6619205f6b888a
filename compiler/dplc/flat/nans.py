"""Where NaN goes: the operations whose result is NaN if an operand is, and the guards that stop it.

    n = ne p p;  m = and a n;  y = select m 0.0 p

Here y is p, but 0.0 where p is NaN and a symbolic zero (a).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of


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


def guarded(defs: Mapping[str, f.Op], rhs: f.Rhs) -> tuple[f.Atom, f.Var] | None:
    """The condition of a guard and what it guards; None if the right-hand side is something else.  `defs` has the
    operations that bind variables."""
    match rhs:
        case f.Op("select", (f.Var() as mask, f.Const(0.0), f.Var() as part)) if f.is_float(elem_of(part.ty)):
            both = defs.get(mask.name)
        case _:
            return None
    if both is None or both.op != "and":
        return None
    absent, odd = both.args
    asked = defs.get(odd.name) if isinstance(odd, f.Var) else None
    return (absent, part) if asked is not None and (asked.op, *asked.args) == ("ne", part, part) else None


OF_GUARD = 3  # operations of a guard: it asks whether a number is NaN, and whether it is absent, and chooses


def guards(ops: Mapping[str, f.Op]) -> set[str]:
    """The guards among operations, by what they bind.  They cost nothing: they are cold branches later."""
    return {name for name, op in ops.items() if guarded(ops, op) is not None}
