"""Core: the typed language that both engines start from.  It has about twenty forms of terms, each with type and span.

Types are explicit (System F): a generalised definition has `params`, and each `Var` that refers to it has the types,
sizes and effects of this use (`inst`, in the order of `params`).  Local names are unique within a definition;
global names are qualified (`Prelude.map`, `main.f`, `main.f#2` for the second of that name).

Functions take one argument; `Prim` is always saturated.  A record is a data type with one constructor (of the same
name) whose argument is the tuple of its fields in order of declaration.  The list constructors are `[]` (tag 0) and
`::` (tag 1, argument `'a * 'a list`).  `e1; e2` is a Let of `_`.  `a && b` is an If.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpl.core import ty as t
from dpl.node import field, node, record
from dpl.source import Span

Value = int | float | str | bool


@node
class Node:
    span: Span
    ty: t.Ty


@node
class Var(Node):
    """A use of a name.  `sizes` is empty or has an item for each of `inst`: terms for the sizes of an array type (see
    `core/shapes.py`)."""

    name: str
    inst: tuple[t.Ty | t.Size | t.Effect, ...] = ()
    sizes: tuple[tuple[Term, ...], ...] = ()


@node
class Lit(Node):
    """A scalar or string.  If a number's type is a variable, `value` is converted to the type of the instance."""

    value: Value


@node
class Lam(Node):
    """A function.  `ty` is its arrow type; `name` is its name in messages (that of the binding, or empty)."""

    param: str
    body: Term
    name: str = ""


@node
class App(Node):
    fn: Term
    arg: Term


@node
class Let(Node):
    """A binding.  `params` are the variables over which it is generalised (usually none)."""

    name: str
    params: tuple[t.Var, ...]
    rhs: Term
    body: Term


@node
class LetRec(Node):
    """Recursive functions; every right-hand side is a Lam.  They are generalised jointly over `params`.  The right-hand
    sides use the names at these same types (their `inst` is `params`)."""

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
class Update(Node):
    """A record with other values in some fields, given by their numbers in the order in which they are computed."""

    record: Term
    fields: tuple[tuple[int, Term], ...]


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
    """Arms are tried in order; together they are exhaustive."""

    scrutinee: Term
    arms: tuple[Arm, ...]


@node
class For(Node):
    """A loop: `state` starts as `init` and becomes `body` for each `index` in 0 .. count - 1.  The value is the last
    state."""

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
    """The array of `body` for `index` in 0 .. count - 1.  A negative count and inner arrays of different shapes are
    run-time errors."""

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
    """The value of `body`, or a run-time error unless the two ints of each pair (actual, expected, text for the
    message) are equal.  In the pairs, `name` stands for the value of `body`.  In native code, a text with `{a}` and
    `{b}` for the two ints is the whole message, and "" is that of an elementwise operation."""

    name: str
    body: Term
    pairs: tuple[tuple[Term, Term, str], ...]


@node
class Extern(Node):
    """A C function as a value of (curried) function type."""

    symbol: str


@node
class Hole(Node):
    """A placeholder for a term that inference has not built yet.  Finished core contains none."""


Term = (
    Var | Lit | Lam | App | Let | LetRec | Tuple | Con | Field | Update | ArrayLit | Prim | If | Match | For | While
    | Build | Shift | Reset | Check | Extern | Hole
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
    """An array with exactly as many elements as `items`."""

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
    """A declared type.  `cases` are (constructor, argument type or None) in order of tags.  A record has one case, with
    the name of the type, and the names of its `fields`.  `params` are the type and size variables."""

    name: str
    params: tuple[t.Var, ...]
    cases: tuple[tuple[str, t.Ty | None], ...]
    fields: tuple[str, ...] = ()


@node
class Def:
    """A top-level definition.  Mutually recursive functions are separate Defs with the same `group` and the same
    `params`; `group` is empty if the definition is not recursive."""

    name: str
    params: tuple[t.Var, ...]
    ty: t.Ty
    body: Term
    group: tuple[str, ...] = ()
    export: bool = False


@node
class Do:
    body: Term


@node
class Expect:
    """A test, `expect "name" = body`: its body is a boolean, or a unit."""

    name: str
    span: Span
    body: Term


@record
class Program:
    """A whole program: the `items` of the user's modules in the order in which they run (imported modules first), the
    standard library's definitions by name in `library` (pure, evaluated on first use), and all data types."""

    items: list[Def | Do | Expect] = field(default_factory=list)
    library: Mapping[str, Def] = field(default_factory=dict)  # any Mapping; may load lazily
    datas: dict[str, Data] = field(default_factory=dict)


LIST = Data("list", (t.Var("a"),), (("[]", None), ("::", t.Tup((t.Var("a"), t.list_of(t.Var("a")))))))
