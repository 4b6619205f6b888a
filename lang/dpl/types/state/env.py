"""The entries of scopes: values, types, constructors, fields and modules."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from dpl.core import ty
from dpl.core.term import LIST, Data
from dpl.diagnostics import DplError
from dpl.node import field, node, record
from dpl.prims import TABLE, Row
from dpl.source import NOWHERE, Span
from dpl.types.solve.meta import Type
from dpl.types.solve.scheme import Scheme


@record
class Group:
    """A group of mutually recursive definitions.

    Inside the group they are monomorphic: they are used at their own `params`.  Only the `sizes` named by annotations
    and their `unknowns` (`?`) are polymorphic, so a function may call itself at other sizes.  `uses` holds the first
    use of each definition."""

    sizes: dict[str, ty.Size]
    unknowns: list[str] = field(default_factory=list)
    params: tuple[ty.Var, ...] = ()
    uses: dict[str, Span] = field(default_factory=dict)


@node
class Value:
    """A name in scope.  `name` is its core name; `group` is set while its own recursive definition is checked.

    `size` is the size that it equals, if it is an int for which one is known; `parameters` is what the definition calls
    its arguments, for documentation."""

    name: str
    scheme: Scheme
    span: Span = NOWHERE
    group: Group | None = None
    size: ty.Size | None = None
    is_global: bool = False
    doc: str = ""
    parameters: tuple[str, ...] = ()


@node
class Primitive:
    name: str
    scheme: Scheme

    @property
    def row(self) -> Row:
        """Its row in the table of primitives."""
        return TABLE[self.name]


@node
class SizeName:
    """A size name from an annotation, usable as an int."""

    size: ty.Size


@node
class Failed:
    """A declaration with an error.

    As a value it fits any type; a use as a type, constructor or field fails silently."""

    @staticmethod
    def again() -> DplError:
        """The silent failure; the error itself was reported at the declaration."""
        return DplError()


Entry = Value | Primitive | SizeName | Failed


@node
class TypeName:
    """A declared type: the core name of a data type, or an abbreviation with its `alias`."""

    name: str
    params: tuple[ty.Var, ...]
    alias: Type | None = None


@node
class Constructor:
    data: Data
    tag: int

    @property
    def name(self) -> str:
        return self.data.cases[self.tag][0]

    @property
    def arg(self) -> ty.Ty | None:
        """The type of the argument, with the type's parameters in it; None if there is none."""
        return self.data.cases[self.tag][1]


@record
class Exports:
    """The declarations that a module exports.  A `missing` module may export any name."""

    values: MutableMapping[str, Entry] = field(default_factory=dict)
    types: dict[str, TypeName | Failed] = field(default_factory=dict)
    constructors: dict[str, Constructor | Failed] = field(default_factory=dict)
    fields: dict[str, Data | Failed] = field(default_factory=dict)
    missing: bool = False

    def public(self) -> Exports:
        """The exports without the names that begin with an underscore."""

        def shown(names: Mapping) -> dict:
            return {name: what for name, what in names.items() if not name.startswith("_")}

        return Exports(shown(self.values), shown(self.types), shown(self.constructors), shown(self.fields))


def _builtin_types() -> dict[str, TypeName]:
    scalars = {name: TypeName(name, ()) for name in (*ty.INTS, *ty.FLOATS, "bool", "string")}
    aliases = {"int": ty.I64, "float": ty.F64, "unit": ty.UNIT}
    one = (ty.Var("a"),)
    return {
        **scalars,
        **{name: TypeName(name, (), alias) for name, alias in aliases.items()},
        "list": TypeName("list", one),
        "ref": TypeName("ref", one),
    }


TYPES = _builtin_types()
CONSTRUCTORS = {"[]": Constructor(LIST, 0), "::": Constructor(LIST, 1)}
