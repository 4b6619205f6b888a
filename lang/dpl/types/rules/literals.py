"""Literals -> types: an integer literal may have any numeric type, a decimal literal any float type."""

from __future__ import annotations

from math import inf

from dpl.core import ty
from dpl.types.solve.meta import Type
from dpl.types.state.context import Context


def literal_type(cx: Context, value: int | float | str | bool, suffix: str) -> Type:
    """The type of a literal.  If some types do not hold the number, those who use the definition are told."""
    if suffix:
        return ty.Con({"int": "i64", "float": "f64"}.get(suffix, suffix))
    if isinstance(value, bool):
        return ty.BOOL
    if isinstance(value, str):
        return ty.STRING
    t = cx.solver.fresh("num", "scalar") if isinstance(value, int) else cx.solver.fresh("real", "scalar")
    cx.literals.append(t)
    if (127 if isinstance(value, int) else 65504.0) < abs(value) < inf:
        cx.large.append((value, t))
    return t
