"""Builds flat code, binding by binding, and infers the types.  Also has the world in which the derivative rules of the
table are read.

    b = Builder(supply)
    y = b.op("mul", x, x)
    b.block(y)                    # { y.1: f64 = mul x x; yield y.1 }
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.source import NOWHERE, Span

from dplc.flat import term as f
from dplc.flat.ops.table import result_type
from dplc.flat.types import elem_of, rank_of


class Builder:
    """`span` is the place of what is written without one."""

    __slots__ = ("binds", "span", "supply")

    def __init__(self, supply: f.Supply, span: Span = NOWHERE) -> None:
        self.supply = supply
        self.span = span
        self.binds: list[f.Bind] = []

    def inner(self) -> Builder:
        """A builder for a block inside this one."""
        return Builder(self.supply, self.span)

    def place(self, span: Span) -> Span:
        """The span of an operation; where it has none, that of what is differentiated."""
        return self.span if span == NOWHERE else span

    def fresh(self, hint: str, ty: f.Type) -> f.Var:
        """A new variable; the hint is the first part of its name."""
        return f.Var(self.supply.fresh(hint), ty)

    def bind(self, types: Sequence[f.Type], rhs: f.Rhs, hint: str = "v") -> tuple[f.Var, ...]:
        """Writes a right-hand side, and gives the variables of its results."""
        vars_ = tuple(self.fresh(hint, ty) for ty in types)
        self.binds.append(f.Bind(vars_, rhs))
        return vars_

    def op(self, name: str, *args: f.Atom, span: Span = NOWHERE, **attrs: object) -> f.Var:
        """An operation with one result."""
        ty = result_type(name, tuple([a.ty for a in args]), attrs)
        return self.bind((ty,), f.Op(name, args, tuple(attrs.items()), self.place(span)), name)[0]

    def call(
        self, fn: str, args: Sequence[f.Atom], results: Sequence[f.Type], span: Span = NOWHERE
    ) -> tuple[f.Var, ...]:
        """Writes a call, and gives its results."""
        return self.bind(results, f.Call(fn, tuple(args), self.place(span)))

    def make(self, items: Sequence[f.Atom]) -> f.Atom:
        """A tuple of some atoms."""
        return self.bind((f.Tup(tuple(a.ty for a in items)),), f.TupMake(tuple(items)), "t")[0] if items else UNIT

    def get(self, tup: f.Atom, index: int) -> f.Var:
        """A component of a tuple."""
        assert isinstance(tup.ty, f.Tup)
        return self.bind((tup.ty.items[index],), f.TupGet(tup, index), "t")[0]

    def con(self, data: str, tag: int, arg: f.Atom | None) -> f.Var:
        """A cell of a constructor."""
        return self.bind((f.Data(data),), f.ConMake(data, tag, arg), "c")[0]

    def choose(self, cond: f.Atom, then: f.Block, else_: f.Block) -> tuple[f.Var, ...]:
        """A branch with these arms."""
        return self.bind([a.ty for a in then.results], f.If(cond, then, else_))

    def dims(self, array: f.Atom) -> tuple[f.Var, ...]:
        """The lengths of an array."""
        return tuple(self.op("dim", array, k=k) for k in range(rank_of(array.ty)))

    def block(self, *results: f.Atom) -> f.Block:
        """What was written, as a block with these results."""
        return f.Block(tuple(self.binds), results)


UNIT = f.Const((), f.UNIT)


def int_(value: int) -> f.Const:
    """An i64."""
    return f.Const(value, f.I64)


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
            return self.b.op("cast", raw[0], to=ty.name, span=self.span)
        return self.b.op(name, *raw, span=self.span)

    def literal(self, number: float, like: f.Atom) -> f.Atom:
        """A number of the type that another one has."""
        ty = elem_of(like.ty)
        return f.Const(float(number) if f.is_float(ty) else int(number), ty)

    def integer(self, value: int) -> f.Atom:
        """An i64."""
        return int_(value)
