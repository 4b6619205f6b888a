"""What names stand for: values, types, constructors, fields and modules, and where they are looked up."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

from dpl.core import ty
from dpl.core.term import LIST, Data
from dpl.diagnostics import DplError
from dpl.node import node
from dpl.prims import TABLE, Row
from dpl.source import NOWHERE, Span
from dpl.types.solve.meta import Type
from dpl.types.solve.scheme import Scheme


@dataclass(slots=True)
class Group:
    """Definitions that are recursive together; inside, they are used at their own `params`, but for the `sizes` that
    their annotations name: a function may call itself with other sizes.  `uses` are the first of each."""

    sizes: dict[str, ty.Size]
    params: tuple[ty.Var, ...] = ()
    uses: dict[str, Span] = field(default_factory=dict)


@node
class Value:
    """A name in scope.  `name` is its name in core; `group` is set while its own definition is checked; `size` is the
    size it is known to be, when it is an int."""

    name: str
    scheme: Scheme
    span: Span = NOWHERE
    group: Group | None = None
    size: ty.Size | None = None
    is_global: bool = False
    doc: str = ""


@node
class Primitive:
    name: str
    scheme: Scheme

    @property
    def row(self) -> Row:
        return TABLE[self.name]


@node
class SizeName:
    """A size of an annotation, as an int."""

    size: ty.Size


@node
class Failed:
    """A declaration with an error.  As a value it fits everywhere; as a type, constructor or field it ends what uses it
    without a word: the error is told once."""

    @staticmethod
    def again() -> DplError:
        """What comes of an error that is told elsewhere."""
        return DplError()


Entry = Value | Primitive | SizeName | Failed


@node
class TypeName:
    """A declared type: a data type under its core name, or what an abbreviation stands for."""

    name: str
    params: tuple[ty.Var, ...]
    alias: Type | None = None


@dataclass(frozen=True, slots=True)
class Constructor:
    data: Data
    tag: int

    @property
    def name(self) -> str:
        return self.data.cases[self.tag][0]

    @property
    def arg(self) -> ty.Ty | None:
        return self.data.cases[self.tag][1]


@dataclass(slots=True)
class Exports:
    """What a module offers.  In one that is `missing` there may be anything."""

    values: MutableMapping[str, Entry] = field(default_factory=dict)
    types: dict[str, TypeName | Failed] = field(default_factory=dict)
    constructors: dict[str, Constructor | Failed] = field(default_factory=dict)
    fields: dict[str, Data | Failed] = field(default_factory=dict)
    missing: bool = False

    def public(self) -> Exports:
        """Without the names that begin with an underscore."""

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
