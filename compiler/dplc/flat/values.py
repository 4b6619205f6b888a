"""Builds the flat code of terms, in which tuples are kept in pieces.

A *value* is an atom, or a `Bundle` of values that stand for the parts of a tuple: a tuple is only made where it is
needed in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpl.diagnostics import Bug
from dpl.source import NOWHERE, Span

from dplc.flat import build
from dplc.flat import term as f
from dplc.flat.build import UNIT_ATOM


class Place(f.Bind):
    """Where the parts of a tuple are taken out of it.  It stands among the bindings of a block that is being built."""

    __slots__ = ("binds",)

    def __init__(self) -> None:
        super().__init__((), f.TupMake(()))
        self.binds: list[f.Bind] = []


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
    passed on.  `place` collects the bindings of the parts."""

    __slots__ = ("builder", "place")

    def __init__(self, builder: ValueBuilder, whole: f.Atom, place: Place) -> None:
        super().__init__(None, whole)
        self.builder, self.place = builder, place

    @property
    def items(self) -> tuple[Value, ...]:
        if self.parts is None:
            assert self.whole is not None and isinstance(self.whole.ty, f.Tup)
            hint = self.whole.name if isinstance(self.whole, f.Var) else "v"
            taken = [self.builder.var(hint, ty) for ty in self.whole.ty.items]
            self.place.binds += [f.Bind((var,), f.TupGet(self.whole, i)) for i, var in enumerate(taken)]
            self.parts = tuple([self.inner(var) for var in taken])
        return self.parts

    def inner(self, part: f.Var) -> Value:
        if not isinstance(part.ty, f.Tup):
            return part
        return Exploded(self.builder, part, self.place) if part.ty.items else UNIT


DEEP = 8  # levels of tuples that are taken apart at once
Value = f.Atom | Bundle
UNIT = Bundle((), UNIT_ATOM)


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


def block_of(binds: Sequence[f.Bind], results: Sequence[f.Atom]) -> f.Block:
    """The block with these bindings, once it is complete."""
    return build.block_of([b for one in binds for b in (one.binds if isinstance(one, Place) else (one,))], results)


class ValueBuilder(build.Builder):
    """Operands of operations and calls may be tuples in pieces."""

    def op(self, name: str, args: Sequence[Value], span: Span = NOWHERE, **attrs: object) -> f.Var:
        """An operation with one result, whose type follows from those of the operands."""
        return super().op(name, self.atoms(args), span, **attrs)

    def effect(self, name: str, args: Sequence[Value], span: Span = NOWHERE, **attrs: object) -> None:
        """An operation without results."""
        super().effect(name, self.atoms(args), span, **attrs)

    def call(self, fn: str, args: Sequence[Value], ty: f.Type, span: Span = NOWHERE, hint: str = "v") -> f.Var:
        """Writes a call of a function of one result."""
        return super().call(fn, self.atoms(args), ty, span, hint)

    def block(self, *results: f.Atom) -> f.Block:
        """What was written, as a block with these results."""
        return block_of(self.binds, results)

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
            place = Place()
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
        return self.make(self.atoms(value.items))

    def atoms(self, values: Sequence[Value]) -> tuple[f.Atom, ...]:
        """The values as atoms; bundles become tuples."""
        return tuple([self.atom(value) for value in values])

    def fresh_like(self, value: Value, hint: str) -> tuple[Value, tuple[f.Var, ...]]:
        """New variables in the form of a value: the value made of them, and the variables."""
        vars_ = tuple([self.var(hint, leaf.ty) for leaf in leaves(value)])
        return like(value, iter(vars_)), vars_
