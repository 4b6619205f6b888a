"""The table of primitives, which both engines read."""

from collections.abc import Callable

from dpl.prims import elementary, scalar, structural
from dpl.prims.table import Row, Val, arity, contribution

TABLE: dict[str, Row] = {row.name: row for row in (*scalar.ROWS, *structural.ROWS)}


def evaluation(name: str, kind: str) -> Callable:
    """The meaning of an elementwise row at a scalar type.  The caller rounds its results to the type, or wraps them."""
    if name in elementary.NAMES and kind in ("f32", "f16"):
        return elementary.function(name, "f32")
    run = elementary.function(name) if name in elementary.NAMES else TABLE[name].eval
    assert run is not None, name
    return run


__all__ = ["TABLE", "Row", "Val", "arity", "contribution", "elementary", "evaluation"]
