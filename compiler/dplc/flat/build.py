"""Builds flat code, binding by binding.

    b = Builder(supply)
    z = b.op("add", (x, y))       writes `add.7: f64 = add x y`, gives the variable
    b.block(z)                    { add.7: f64 = add x y; yield add.7 }

`lower` has a builder that keeps tuples in pieces (`flat/values.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from math import prod

from dpl.source import NOWHERE, Span

from dplc.flat import term as f
from dplc.flat.ops.table import result_type
from dplc.flat.types import rank_of

UNIT_ATOM = f.Const((), f.UNIT)


def integer(n: int) -> f.Const:
    """An i64, as indices and lengths are."""
    return f.Const(n, f.I64)


def number_zero(ty: f.Type) -> f.Const:
    """The zero of a type of numbers, or false."""
    return f.Const(0.0 if f.is_float(ty) else False if ty == f.BOOL else 0, ty)


def block_of(binds: Sequence[f.Bind], results: Sequence[f.Atom]) -> f.Block:
    """The block with these bindings, once it is complete."""
    return f.Block(tuple(binds), tuple(results))


class Builder:
    """Collects the bindings of one function; `inside` collects those of an inner block, as does an `inner` builder
    beside this one.  `span` is the place of what is written without one."""

    __slots__ = ("binds", "span", "supply")

    def __init__(self, supply: f.Supply | None = None, span: Span = NOWHERE) -> None:
        self.supply = supply or f.Supply()
        self.binds: list[f.Bind] = []
        self.span = span

    def inner(self) -> Builder:
        """A builder for a block inside this one."""
        return Builder(self.supply, self.span)

    def block(self, *results: f.Atom) -> f.Block:
        """What was written, as a block with these results."""
        return block_of(self.binds, results)

    @contextmanager
    def at(self, span: Span) -> Generator[None]:
        """What is written meanwhile stands there, unless it says otherwise."""
        outer, self.span = self.span, span
        try:
            yield
        finally:
            self.span = outer

    def place(self, span: Span) -> Span:
        """The span of an operation; where it has none, that of the term that is being translated."""
        return self.span if span == NOWHERE else span

    @contextmanager
    def inside(self) -> Generator[list[f.Bind]]:
        """What is written meanwhile goes into the list that this gives: an inner block."""
        outer, self.binds = self.binds, []
        try:
            yield self.binds
        finally:
            self.binds = outer

    def var(self, hint: str, ty: f.Type) -> f.Var:
        """A new variable; the hint is the first part of its name."""
        return f.Var(self.supply.fresh(hint), ty)

    def bind(self, rhs: f.Rhs, types: Sequence[f.Type], hint: str = "v") -> tuple[f.Var, ...]:
        """Writes a right-hand side of several results, and gives their variables."""
        vars_ = tuple([self.var(hint, ty) for ty in types])
        self.binds.append(f.Bind(vars_, rhs))
        return vars_

    def one(self, rhs: f.Rhs, ty: f.Type, hint: str = "v") -> f.Var:
        """Writes a right-hand side of one result."""
        return self.bind(rhs, (ty,), hint)[0]

    def op(self, name: str, args: Sequence[f.Atom], span: Span = NOWHERE, **attrs: object) -> f.Var:
        """An operation with one result, whose type follows from those of the operands."""
        ty = result_type(name, tuple([a.ty for a in args]), attrs)
        return self.one(f.Op(name, tuple(args), tuple(attrs.items()), self.place(span)), ty, name)

    def effect(self, name: str, args: Sequence[f.Atom], span: Span = NOWHERE, **attrs: object) -> None:
        """An operation without results."""
        self.bind(f.Op(name, tuple(args), tuple(attrs.items()), self.place(span)), ())

    def call(self, fn: str, args: Sequence[f.Atom], ty: f.Type, span: Span = NOWHERE, hint: str = "v") -> f.Var:
        """Writes a call of a function of one result."""
        return self.one(f.Call(fn, tuple(args), self.place(span)), ty, hint)

    def calls(
        self, fn: str, args: Sequence[f.Atom], results: Sequence[f.Type], span: Span = NOWHERE
    ) -> tuple[f.Var, ...]:
        """Writes a call of a function of several results."""
        return self.bind(f.Call(fn, tuple(args), self.place(span)), results)

    def choose(self, cond: f.Atom, then: f.Block, else_: f.Block) -> tuple[f.Var, ...]:
        """A branch with these arms."""
        return self.bind(f.If(cond, then, else_), [a.ty for a in then.results])

    def dims(self, array: f.Atom) -> tuple[f.Var, ...]:
        """The lengths of an array."""
        return tuple([self.op("dim", (array,), k=k) for k in range(rank_of(array.ty))])

    # ---- tuples and data --------------------------------------------------------------------------------------------

    def con(self, data: str, tag: int, arg: f.Atom | None) -> f.Var:
        """A cell of a constructor."""
        return self.one(f.ConMake(data, tag, arg), f.Data(data), "c")

    def make(self, items: Sequence[f.Atom]) -> f.Atom:
        """A tuple of some atoms."""
        return self.one(f.TupMake(tuple(items)), f.Tup(tuple([a.ty for a in items])), "t") if items else UNIT_ATOM

    def get(self, tup: f.Atom, index: int) -> f.Var:
        """A component of a tuple."""
        assert isinstance(tup.ty, f.Tup)
        return self.one(f.TupGet(tup, index), tup.ty.items[index], "t")


def all_hold(b: Builder, tests: Sequence[f.Atom]) -> f.Atom:
    """True if all of these tests do, at least one."""
    return reduce(lambda both, test: b.op("and", (both, test)), tests)


def product(b: Builder, factors: Sequence[f.Atom]) -> f.Atom:
    """The product of lengths; that of known ones is known."""
    known = prod([n.value for n in factors if isinstance(n, f.Const) and isinstance(n.value, int)])
    if known >= 2**63:  # no such array is there
        return reduce(lambda total, factor: b.op("mul", (total, factor)), factors)
    others = [n for n in factors if not isinstance(n, f.Const)]
    factors = others if known == 1 and others else [integer(known), *others]
    return reduce(lambda total, factor: b.op("mul", (total, factor)), factors)
