"""Literals -> types: an integer literal may have any numeric type, a decimal literal any float type."""

from __future__ import annotations

from math import inf

from dpl.core import ty
from dpl.types.solve.kinds import holding
from dpl.types.solve.meta import Type
from dpl.types.state.context import Context


def literal_type(cx: Context, value: int | float | str | bool, suffix: str) -> Type:
    """The type of a literal.  If some types do not hold the number, a class says so to whoever uses the definition."""
    if suffix:
        return ty.Con({"int": "i64", "float": "f64"}.get(suffix, suffix))
    if isinstance(value, bool):
        return ty.BOOL
    if isinstance(value, str):
        return ty.STRING
    numbers, most = ("num", 127) if isinstance(value, int) else ("real", 65504.0)
    t = cx.solver.fresh("scalar", numbers, *((holding(value),) if most < abs(value) < inf else ()))
    cx.literals.append(t)
    return t
