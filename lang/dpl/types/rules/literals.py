"""Literals -> types: an integer literal may have any numeric type, a decimal literal any float type."""

from __future__ import annotations

from dpl.core import ty
from dpl.types.solve.meta import Type
from dpl.types.state.context import Context


def literal_type(cx: Context, value: int | float | str | bool, suffix: str) -> Type:
    if suffix:
        return ty.Con({"int": "i64", "float": "f64"}.get(suffix, suffix))
    if isinstance(value, bool):
        return ty.BOOL
    if isinstance(value, str):
        return ty.STRING
    t = cx.solver.fresh("num", "scalar") if isinstance(value, int) else cx.solver.fresh("real", "scalar")
    cx.literals.append(t)
    return t
