"""Builds flat code, binding by binding.

    b.op("add", (x, y), F64)      appends `add.7 = add x y`, returns the variable

A *value* is an atom, or a `Bundle` of values that stand for the parts of a tuple: a tuple is only made where it is
needed in one piece.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from math import prod

from dpl.diagnostics import Bug
from dpl.source import NOWHERE, Span

from dplc.flat import term as f
from dplc.flat.ops.table import result_type


class Bundle:
    """A tuple in pieces.  `whole` is the tuple in one piece, if there is one already."""

    __slots__ = ("parts", "whole")

    def __init__(self, parts: tuple[Value, ...] | None, whole: f.Atom | None = None) -> None:
        self.parts = parts
        self.whole = whole

    @property
    def items(self) -> tuple[Value, ...]:
        assert self.parts is not None
        return self.parts


class Exploded(Bundle):
    """A tuple deep inside another, taken apart only as far as its parts are asked for: captures of captures are only
    passed on.  `place` collects the bindings of the parts; it stands among those of the block."""

    __slots__ = ("builder", "place")

    def __init__(self, builder: Builder, whole: f.Atom, place: list[f.Bind]) -> None:
        super().__init__(None, whole)
        self.builder, self.place = builder, place

    @property
    def items(self) -> tuple[Value, ...]:
        if self.parts is None:
            assert self.whole is not None and isinstance(self.whole.ty, f.Tup)
            hint = self.whole.name if isinstance(self.whole, f.Var) else "v"
            taken = [self.builder.var(hint, ty) for ty in self.whole.ty.items]
            self.place += [f.Bind((var,), f.TupGet(self.whole, i)) for i, var in enumerate(taken)]
            self.parts = tuple([self.inner(var) for var in taken])
        return self.parts

    def inner(self, part: f.Var) -> Value:
        if not isinstance(part.ty, f.Tup):
            return part
        return Exploded(self.builder, part, self.place) if part.ty.items else UNIT


DEEP = 8  # levels of tuples that are taken apart at once
Value = f.Atom | Bundle
UNIT_ATOM = f.Const((), f.UNIT)
UNIT = Bundle((), UNIT_ATOM)


def integer(n: int) -> f.Const:
    """An i64, as indices and lengths are."""
    return f.Const(n, f.I64)


def number_zero(ty: f.Type) -> f.Const:
    """The zero of a type of numbers, or false."""
    return f.Const(0.0 if f.is_float(ty) else False if ty == f.BOOL else 0, ty)


def pieces(value: Value) -> tuple[Value, ...]:
    """The parts of a tuple's value."""
    if not isinstance(value, Bundle):
        raise Bug(f"not in pieces: {value}")
    return value.items


def leaves(value: Value) -> list[f.Atom]:
    """The atoms of a value, in order."""
    if not isinstance(value, Bundle):
        return [value]
    return [leaf for item in value.items for leaf in leaves(item)]


def type_of(value: Value) -> f.Type:
    """The type of a value; a bundle's is a tuple."""
    return f.Tup(tuple([type_of(item) for item in value.items])) if isinstance(value, Bundle) else value.ty


def like(value: Value, atoms: Iterator[f.Atom]) -> Value:
    """A value of the same form, made of other atoms."""
    if not isinstance(value, Bundle):
        return next(atoms)
    return Bundle(tuple([like(item, atoms) for item in value.items])) if value.items else UNIT


Binds = list[f.Bind | list[f.Bind]]  # of a block that is being built: inner lists are the places of parts of tuples


def block_of(binds: Binds, results: Sequence[f.Atom]) -> f.Block:
    """The block with these bindings, once it is complete."""
    return f.Block(tuple([b for one in binds for b in ((one,) if isinstance(one, f.Bind) else one)]), tuple(results))


class Builder:
    """Collects the bindings of one function; `inside` collects those of an inner block."""

    def __init__(self, supply: f.Supply | None = None) -> None:
        self.supply = supply or f.Supply()
        self.binds: Binds = []
        self.span = NOWHERE  # of what is written without one

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
    def inside(self) -> Generator[Binds]:
        """What is written meanwhile goes into the list that this gives: an inner block."""
        outer, self.binds = self.binds, []
        try:
            yield self.binds
        finally:
            self.binds = outer

    def var(self, hint: str, ty: f.Type) -> f.Var:
        """A new variable; the hint is the first part of its name."""
        return f.Var(self.supply.fresh(hint), ty)

    def bind(self, rhs: f.Rhs, types: Sequence[f.Type], hint: str = "v") -> list[f.Var]:
        """Writes a right-hand side of several results, and gives their variables."""
        vars_ = [self.var(hint, ty) for ty in types]
        self.binds.append(f.Bind(tuple(vars_), rhs))
        return vars_

    def one(self, rhs: f.Rhs, ty: f.Type, hint: str = "v") -> f.Var:
        """Writes a right-hand side of one result."""
        return self.bind(rhs, (ty,), hint)[0]

    def op(self, name: str, args: Sequence[Value], span: Span = NOWHERE, **attrs: object) -> f.Var:
        """An operation with one result, whose type follows from those of the operands."""
        atoms = self.atoms(args)
        ty = result_type(name, tuple([a.ty for a in atoms]), attrs)
        return self.one(f.Op(name, atoms, tuple(attrs.items()), self.place(span)), ty, name)

    def effect(self, name: str, args: Sequence[Value], span: Span = NOWHERE, **attrs: object) -> None:
        """An operation without results."""
        self.bind(f.Op(name, self.atoms(args), tuple(attrs.items()), self.place(span)), ())

    def call(self, fn: str, args: Sequence[Value], ty: f.Type, span: Span = NOWHERE, hint: str = "v") -> f.Var:
        """Writes a call of a function of one result."""
        return self.one(f.Call(fn, self.atoms(args), self.place(span)), ty, hint)

    # ---- cells that last as long as the process ---------------------------------------------------------------------

    def keep(self, name: str, value: Value, span: Span = NOWHERE) -> None:
        """Stores a value in the cell of that name, inside a 1-tuple.  Derivatives distinguish references by the types
        of their contents, and no reference of the program holds a 1-tuple."""
        atom = self.atom(value)
        tup = self.one(f.TupMake((atom,)), f.Tup((atom.ty,)), "kept")
        self.effect("ref_set", (self.cell(name, atom.ty, span), tup), span)

    def kept(self, name: str, ty: f.Type, span: Span = NOWHERE) -> Value:
        """The value stored in the cell of that name."""
        tup = self.op("ref_get", (self.cell(name, ty, span),), span)
        return self.explode(self.one(f.TupGet(tup, 0), ty, "kept"))

    def cell(self, name: str, ty: f.Type, span: Span) -> f.Var:
        """A reference that exists once in a program, with the name of what it holds."""
        return self.one(f.Op("state", (), (("name", name),), span), f.Ref(f.Tup((ty,))), "cell")

    # ---- tuples -----------------------------------------------------------------------------------------------------

    def explode(self, atom: f.Atom, depth: int = 0) -> Value:
        """The parts of a tuple, exploded in turn."""
        if not isinstance(atom.ty, f.Tup):
            return atom
        if not atom.ty.items:
            return UNIT
        if depth == DEEP:
            place: list[f.Bind] = []
            self.binds.append(place)
            return Exploded(self, atom, place)
        hint = atom.name if isinstance(atom, f.Var) else "v"
        parts = [self.explode(self.one(f.TupGet(atom, i), ty, hint), depth + 1) for i, ty in enumerate(atom.ty.items)]
        return Bundle(tuple(parts), atom)

    def atom(self, value: Value) -> f.Atom:
        """A value in one piece."""
        if not isinstance(value, Bundle):
            return value
        if value.whole is not None:
            return value.whole
        items = [self.atom(item) for item in value.items]
        return self.one(f.TupMake(tuple(items)), f.Tup(tuple([a.ty for a in items])), "t")

    def atoms(self, values: Sequence[Value]) -> tuple[f.Atom, ...]:
        """The values as atoms; bundles become tuples."""
        return tuple([self.atom(value) for value in values])

    def fresh_like(self, value: Value, hint: str) -> tuple[Value, tuple[f.Var, ...]]:
        """New variables in the form of a value: the value made of them, and the variables."""
        vars_ = tuple([self.var(hint, leaf.ty) for leaf in leaves(value)])
        return like(value, iter(vars_)), vars_


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
