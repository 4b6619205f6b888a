"""The table of primitives, which both engines read."""

from dpl.prims import scalar, structural
from dpl.prims.table import Row, Val, arity, contribution

TABLE: dict[str, Row] = {row.name: row for row in (*scalar.ROWS, *structural.ROWS)}

__all__ = ["TABLE", "Row", "Val", "arity", "contribution"]
