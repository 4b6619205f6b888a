"""The elementary functions in flat, such as exp and sin."""

from __future__ import annotations

from dpl.prims.elementary import VECTORS

from dplc.flat import term as f


def is_function(rhs: f.Rhs) -> bool:
    """True for an elementary function that there is for vectors."""
    return isinstance(rhs, f.Op) and rhs.op in VECTORS
