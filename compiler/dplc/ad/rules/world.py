"""The world in which the derivative rules of the table of primitives are read when they emit flat code."""

from __future__ import annotations

from dpl.source import Span

from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.types import elem_of


class World:
    """The world of derivative rules that emit code into a builder.  Its values are atoms."""

    __slots__ = ("b", "span")

    def __init__(self, b: Builder, span: Span) -> None:
        self.b = b
        self.span = span

    def apply(self, name: str, *raw: f.Atom) -> f.Atom:
        """A primitive of the table on atoms."""
        if name == "to_like":
            ty = elem_of(raw[1].ty)
            assert isinstance(ty, f.Num)
            return self.b.op("cast", (raw[0],), to=ty.name, span=self.span)
        return self.b.op(name, raw, span=self.span)

    def literal(self, number: float, like: f.Atom) -> f.Atom:
        """A number of the type that another one has."""
        ty = elem_of(like.ty)
        return f.Const(float(number) if f.is_float(ty) else int(number), ty)

    def integer(self, value: int) -> f.Atom:
        """An i64."""
        return integer(value)
