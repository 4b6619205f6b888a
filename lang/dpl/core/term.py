"""Core: the typed language that both engines start from.  A dozen and a half shapes, each typed, each with its span.

Types are explicit (System F): a generalised definition has `params`, and each `Var` that refers to it says with which
types, sizes and effects it is used (`inst`, in the order of `params`).  Local names are unique within a definition;
global names are qualified (`Prelude.map`, `main.f`, `main.f#2` for the second of that name).

Functions take one argument; `Prim` is always saturated.  A record is a data type with one constructor (of the same
name) whose argument is the tuple of its fields in order of declaration.  The list constructors are `[]` (tag 0) and
`::` (tag 1, argument `'a * 'a list`).  `e1; e2` is a Let of `_`.  `a && b` is an If.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpl.core import ty as t
from dpl.node import node
from dpl.source import Span

Value = int | float | str | bool


@node
class Node:
    span: Span
    ty: t.Ty


@node
class Var(Node):
    """`sizes`, if any, are ints for each of `inst`: of a type that is an array, its sizes (see `core/shapes.py`)."""

    name: str
    inst: tuple[t.Ty | t.Size | t.Effect, ...] = ()
    sizes: tuple[tuple[Term, ...], ...] = ()


@node
class Lit(Node):
    """A scalar or string; where a number's type is a variable, `value` becomes what it is instantiated to."""

    value: Value


@node
class Lam(Node):
    """`ty` is the arrow; `name` is what messages call it (the binding's name, or empty)."""

    param: str
    body: Term
    name: str = ""


@node
class App(Node):
    fn: Term
    arg: Term


@node
class Let(Node):
    """`params` are the variables generalised over (usually none)."""

    name: str
    params: tuple[t.Var, ...]
    rhs: Term
    body: Term


@node
class LetRec(Node):
    """Every right-hand side is a Lam.  `params` are generalised over, jointly; inside the right-hand sides the names
    are used at the same types (`inst` is then `params` themselves)."""

    params: tuple[t.Var, ...]
    bindings: tuple[tuple[str, Term], ...]
    body: Term


@node
class Tuple(Node):
    items: tuple[Term, ...]


@node
class Con(Node):
    """A saturated constructor of the data type `ty.name`."""

    name: str
    tag: int
    arg: Term | None


@node
class Field(Node):
    """Field number `index` of a record."""

    record: Term
    index: int


@node
class ArrayLit(Node):
    items: tuple[Term, ...]


@node
class Prim(Node):
    """A saturated primitive of `prims.table`.  Its operand types are those of `args`."""

    op: str
    args: tuple[Term, ...]


@node
class If(Node):
    cond: Term
    then: Term
    else_: Term


@node
class Arm:
    span: Span
    pattern: Pattern
    guard: Term | None
    body: Term


@node
class Match(Node):
    """Arms are tried in order; they are exhaustive."""

    scrutinee: Term
    arms: tuple[Arm, ...]


@node
class For(Node):
    """`state` starts as `init` and becomes `body`, `index` running over 0 .. count - 1; the value is the last state."""

    state: str
    init: Term
    index: str
    count: Term
    body: Term


@node
class While(Node):
    state: str
    init: Term
    cond: Term
    body: Term


@node
class Build(Node):
    """The array of `body` for `index` in 0 .. count - 1.  A negative count is a run-time error, and so are inner
    arrays of different shapes."""

    index: str
    count: Term
    body: Term


@node
class Shift(Node):
    name: str
    body: Term


@node
class Reset(Node):
    body: Term


@node
class Check(Node):
    """`body`, once each pair of ints agrees; otherwise a run-time error: (actual, expected, what to say of them).
    `name` stands for the body's value in the pairs."""

    name: str
    body: Term
    pairs: tuple[tuple[Term, Term, str], ...]


@node
class Extern(Node):
    """A C function as a value of (curried) function type."""

    symbol: str


@node
class Hole(Node):
    """A term that inference has yet to build.  There are none in finished core."""


Term = (
    Var | Lit | Lam | App | Let | LetRec | Tuple | Con | Field | ArrayLit | Prim | If | Match | For | While | Build
    | Shift | Reset | Check | Extern | Hole
)  # fmt: skip


# ---- patterns ---------------------------------------------------------------------------------------------------


@node
class PWild:
    ty: t.Ty


@node
class PVar:
    ty: t.Ty
    name: str


@node
class PLit:
    ty: t.Ty
    value: Value


@node
class PTuple:
    ty: t.Ty
    items: tuple[Pattern, ...]


@node
class PCon:
    """A constructor of a data type or list, or a record (tag 0 and a PTuple of all fields)."""

    ty: t.Ty
    name: str
    tag: int
    arg: Pattern | None


@node
class PArray:
    """An array of exactly as many elements as `items`."""

    ty: t.Ty
    items: tuple[Pattern, ...]


@node
class PAs:
    ty: t.Ty
    pattern: Pattern
    name: str


@node
class POr:
    ty: t.Ty
    left: Pattern
    right: Pattern


Pattern = PWild | PVar | PLit | PTuple | PCon | PArray | PAs | POr


# ---- programs ---------------------------------------------------------------------------------------------------


@node
class Data:
    """A declared type.  `cases` in order of tags: (constructor, argument type or None).  A record has one case, named
    as the type, and its `fields`' names.  `params` are its type and size variables."""

    name: str
    params: tuple[t.Var, ...]
    cases: tuple[tuple[str, t.Ty | None], ...]
    fields: tuple[str, ...] = ()


@node
class Def:
    """A top-level definition.  A group of mutually recursive functions is several Defs with one `group`, and the same
    `params`; `group` is empty for one that is not recursive."""

    name: str
    params: tuple[t.Var, ...]
    ty: t.Ty
    body: Term
    group: tuple[str, ...] = ()
    export: bool = False


@node
class Do:
    body: Term


@dataclass(frozen=True, slots=True)
class Expect:
    name: str
    span: Span
    body: Term


@dataclass(slots=True)
class Program:
    """Everything reachable: `items` of the user's modules in the order in which they run (imported modules first), the
    standard library's definitions by name in `library` (pure, evaluated when first wanted), all data types."""

    items: list[Def | Do | Expect] = field(default_factory=list)
    library: Mapping[str, Def] = field(default_factory=dict)  # any Mapping; may load lazily
    datas: dict[str, Data] = field(default_factory=dict)


LIST = Data("list", (t.Var("a"),), (("[]", None), ("::", t.Tup((t.Var("a"), t.list_of(t.Var("a")))))))
