"""Invariants said aloud.

the(Arr, ty).elem      the element of what must be an array here; anything else is a Bug
a_type(content)        an argument of a type that must be a type, and no size
"""

from __future__ import annotations

from typing import TypeVar

from dpl.core import ty as t
from dpl.diagnostics import Bug

T = TypeVar("T")


def the(kind: type[T], x: object) -> T:
    if not isinstance(x, kind):
        raise Bug(f"not a {kind.__name__}: {x}")
    return x


def a_type(argument: t.Ty | t.Size | t.Effect) -> t.Ty:
    if isinstance(argument, t.Size | t.Pure | t.Ctl):
        raise Bug(f"not a type: {argument}")
    return argument
