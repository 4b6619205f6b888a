"""Narrowing of Python types where the compiler knows more than the type checker.  A wrong type is a Bug.

expect_type(Arr, ty).elem    the element type of `ty`, which must be an array here
a_type(content)              an argument of a type constructor that must be a type, not a size or an effect
"""

from __future__ import annotations

from typing import TypeVar

from dpl.core import ty as t
from dpl.diagnostics import Bug

T = TypeVar("T")


def expect_type(kind: type[T], x: object) -> T:
    """`x`, which is of this class."""
    if not isinstance(x, kind):
        raise Bug(f"not a {kind.__name__}: {x}")
    return x


def a_type(argument: t.Ty | t.Size | t.Effect) -> t.Ty:
    """An argument of a type constructor that is a type, not a size or an effect."""
    if isinstance(argument, t.Size | t.Pure | t.Ctl):
        raise Bug(f"not a type: {argument}")
    return argument
