"""What debuggers call the variables of flat: the names that `let`, patterns and loops of the program give to values.

    let scaled = xs * w in ...      mul.3 becomes scaled:0.3, and `scaled` is seen where `...` stands

A variable of flat keeps the first part of its name, the *base*, when passes copy it.  So a value has a base of its own,
and `LocalNames` knows for each base what it is called and where.  A pass may also name something else after a variable,
such as an element after its array: that has another type, and no name.  What takes the place of a variable has its name
too, x:1+y:2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpl.node import field, node, record, replace
from dpl.source import Source, Span

from dplc.flat import term as f
from dplc.flat.copy import Copier
from dplc.flat.values import Bundle, Exploded, Value, leaves, type_of

MARK, AND = ":", "+"  # in bases: before the number that makes it unique, and between several
MADE = ("_", "match", "param", "state")  # names of variables that no user has written


@node
class Local:
    """A value, or a part of it, that has a name where `scope` stands, in the function `label`."""

    name: str
    scope: Span
    label: str
    whole: f.Type  # of the value
    before: tuple[f.Type, ...]  # of the atoms of the value that are before the variable
    ty: f.Type  # of the variable


@record
class Named:
    """A binding of the program: `name` stands for `value` in the text `scope`."""

    name: str
    value: Value
    scope: Span


@record
class LocalNames:
    """The names of all values, by base, and where the functions are that have any, by source and label.  Where code is
    not optimised, values `stay` when they are not used any more."""

    stay: bool = False
    locals: dict[str, Local] = field(default_factory=dict)
    functions: dict[tuple[Source, str], Span] = field(default_factory=dict)

    def of(self, var: f.Var) -> list[Local]:
        """What a variable is called."""
        known = [self.locals[one] for one in base(var.name).split(AND) if one in self.locals]
        return [local for local in known if local.ty == var.ty]

    def given(self, fn: f.Fn, bindings: Sequence[Named]) -> f.Fn:
        """The function, whose variables have bases that tell their names."""
        bases: dict[str, str] = {}
        for one in bindings:
            if one.name in MADE or one.scope.source.in_library or is_deep(one.value) or is_open(type_of(one.value)):
                continue
            self.functions[one.scope.source, fn.label] = fn.span
            parts = leaves(one.value)
            for place, atom in enumerate(parts):
                if isinstance(atom, f.Var):
                    new, before = f"{one.name}{MARK}{len(self.locals)}", tuple([part.ty for part in parts[:place]])
                    self.locals[new] = Local(one.name, one.scope, fn.label, type_of(one.value), before, atom.ty)
                    bases[atom.name] = f"{bases[atom.name]}{AND}{new}" if atom.name in bases else new
        return with_bases(fn, bases)


def base(name: str) -> str:
    """The first part of a name."""
    return name.partition(".")[0]


def replaced(bases: dict[str, str], var: f.Var, by: f.Atom) -> None:
    """Notes in `bases` that the value `by`, which takes the place of a variable, has its name, too."""
    if MARK in var.name and isinstance(by, f.Var) and base(by.name) != base(var.name):
        known = bases.get(by.name, base(by.name))
        bases[by.name] = f"{known}{AND}{base(var.name)}" if MARK in known else base(var.name)


def with_bases(fn: f.Fn, bases: Mapping[str, str]) -> f.Fn:
    """The function with other bases for some of its variables."""
    code = _Based(bases)
    return replace(fn, params=tuple([code.var(var) for var in fn.params]), body=code.block(fn.body)) if bases else fn


def is_deep(value: Value) -> bool:
    """Whether parts of a value are not taken apart before something asks for them."""
    return isinstance(value, Exploded) or (isinstance(value, Bundle) and any(map(is_deep, value.items)))


def is_open(ty: f.Type) -> bool:
    """Whether a type has parts that differentiation decides, as the type of a pullback has."""
    match ty:
        case f.Tup(items):
            return any(map(is_open, items))
        case f.Arr(elem):
            return is_open(elem)
        case _:
            return isinstance(ty, f.Res)


class _Based(Copier):
    """The same code under other names."""

    def __init__(self, bases: Mapping[str, str]) -> None:
        super().__init__(f.Supply(), {})
        self.bases = bases

    def var(self, var: f.Var) -> f.Var:
        new = self.bases.get(var.name)
        return var if new is None else f.Var(f"{new}.{var.name.rpartition('.')[2]}", var.ty)

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.var(atom) if isinstance(atom, f.Var) else atom

    def operands(self, atoms: tuple[f.Atom, ...]) -> tuple[f.Atom, ...]:
        return tuple(map(self.atom, atoms))
