"""Invariants said aloud.

    the(Arr, ty).elem      the element of what must be an array here; anything else is a Bug
"""

from __future__ import annotations

from typing import TypeVar

from dpl.diagnostics import Bug

T = TypeVar("T")


def the(kind: type[T], x: object) -> T:
    if not isinstance(x, kind):
        raise Bug(f"not a {kind.__name__}: {x}")
    return x
