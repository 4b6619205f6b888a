"""The syntax tree: it represents the text and adds nothing.  Every node has its span.

A name is a string; a qualified name keeps its dots (`Nn.dense`).  Operators are names too (`+`, `<+>`).
`&&`, `||` are `Logic`; all other infix operators are `Binary` with the operator's name, looked up in scope.
"""

from __future__ import annotations

from dpl.node import node
from dpl.source import Span
from dpl.syntax.type_tree import (  # noqa: F401 (types are part of the tree)
    Node,
    Size,
    SizeNum,
    SizeOp,
    SizeOpen,
    SizeUnknown,
    SizeVar,
    TyArray,
    TyFun,
    TyName,
    TyOpen,
    Type,
    TyTuple,
    TyVar,
)


def member(name: str) -> str:
    """A name without the module that qualifies it."""
    return name.rpartition(".")[2]


# ---- patterns ---------------------------------------------------------------------------------------------------


@node
class PatWild(Node):
    pass


@node
class PatVar(Node):
    name: str


@node
class PatLit(Node):
    """A number (with its sign), string or boolean; `suffix` as in Lit."""

    value: int | float | str | bool
    suffix: str = ""


@node
class PatTuple(Node):
    items: tuple[Pattern, ...]  # () is unit


@node
class PatCon(Node):
    name: str
    arg: Pattern | None = None


@node
class PatCons(Node):
    head: Pattern
    tail: Pattern


@node
class PatList(Node):
    items: tuple[Pattern, ...]  # `[]` is the empty list (or array: by its type)


@node
class PatArray(Node):
    items: tuple[Pattern, ...]  # at least one


@node
class PatRecord(Node):
    fields: tuple[tuple[str, Pattern], ...]  # a name may be qualified, as in Record
    open: bool  # `{ x; _ }`


@node
class PatAs(Node):
    pattern: Pattern
    name: str


@node
class PatOr(Node):
    left: Pattern
    right: Pattern


@node
class PatAnnot(Node):
    pattern: Pattern
    type: Type


Pattern = (
    PatWild | PatVar | PatLit | PatTuple | PatCon | PatCons | PatList | PatArray | PatRecord | PatAs | PatOr | PatAnnot
)


# ---- expressions ------------------------------------------------------------------------------------------------


@node
class Lit(Node):
    """A number, string or boolean.  `suffix` is `i32`, `f32`, ... or empty; `text` is the literal as written."""

    value: int | float | str | bool
    suffix: str = ""
    text: str = ""


@node
class Interp(Node):
    """`$"..."`: strings, and expressions with their format (`.4f`, or empty)."""

    parts: tuple[str | tuple[Expr, str], ...]


@node
class Var(Node):
    """A value's name, perhaps qualified, or an operator in parentheses."""

    name: str


@node
class Con(Node):
    """A constructor; applied by App."""

    name: str


@node
class Tuple(Node):
    items: tuple[Expr, ...]  # () is unit


@node
class ListLit(Node):
    items: tuple[Expr, ...]  # `[]`, `[x;]`, `[x; y]`


@node
class ArrayLit(Node):
    items: tuple[Expr, ...]  # at least one


@node
class ForRange(Node):
    name: str  # `_` if there is none
    count: Expr


@node
class ForIn(Node):
    pattern: Pattern
    array: Expr


@node
class Comprehension(Node):
    clauses: tuple[ForRange | ForIn, ...]
    cond: Expr | None  # `when`, after the last clause
    body: Expr


@node
class Record(Node):
    fields: tuple[tuple[str, Expr], ...]  # `{ x; y = e }`: x stands for x = x; `{ Optim.start = e }` names the type


@node
class RecordWith(Node):
    record: Expr
    fields: tuple[tuple[str, Expr], ...]


@node
class ArrayWith(Node):
    """`{ a with [i, j] = e }`; several updates, separated by `;`, are applied in order."""

    array: Expr
    updates: tuple[tuple[tuple[Expr, ...], Expr], ...]


@node
class Field(Node):
    record: Expr
    name: str


@node
class Slice(Node):
    low: Expr | None
    high: Expr | None


@node
class Index(Node):
    array: Expr
    indices: tuple[Expr | Slice, ...]


@node
class App(Node):
    fn: Expr
    arg: Expr


@node
class Unary(Node):
    op: str  # - (negation) or ! (dereference); `not` is a function
    arg: Expr


@node
class Binary(Node):
    """Any infix operator except `&&`, `||`, `::`, `|>`, `:=`; `op_span` is the span of the operator."""

    op: str
    left: Expr
    right: Expr
    op_span: Span


@node
class Logic(Node):
    op: str  # && ||
    left: Expr
    right: Expr


@node
class Cons(Node):
    head: Expr
    tail: Expr


@node
class Pipe(Node):
    arg: Expr
    fn: Expr


@node
class Assign(Node):
    ref: Expr
    value: Expr


@node
class Seq(Node):
    first: Expr
    second: Expr


@node
class If(Node):
    cond: Expr
    then: Expr
    else_: Expr | None


@node
class Arm(Node):
    pattern: Pattern
    guard: Expr | None
    body: Expr


@node
class Match(Node):
    scrutinee: Expr
    arms: tuple[Arm, ...]


@node
class Fun(Node):
    params: tuple[Pattern, ...]
    body: Expr


@node
class Binding(Node):
    """`f p1 p2 : t = e`, or `pattern = e` when there are no parameters."""

    pattern: Pattern
    params: tuple[Pattern, ...]
    annot: Type | None
    body: Expr


@node
class Let(Node):
    rec: bool
    bindings: tuple[Binding, ...]
    body: Expr


@node
class LoopFor(Node):
    state: Pattern
    init: Expr
    index: str  # `_` if there is none
    count: Expr
    body: Expr


@node
class LoopWhile(Node):
    state: Pattern
    init: Expr
    cond: Expr
    body: Expr


@node
class Shift(Node):
    name: str
    body: Expr


@node
class Reset(Node):
    body: Expr


@node
class Annot(Node):
    expr: Expr
    type: Type


@node
class Coerce(Node):
    """`(e :> t)`: the sizes are checked at run time."""

    expr: Expr
    type: Type


Expr = (
    Lit | Interp | Var | Con | Tuple | ListLit | ArrayLit | Comprehension | Record | RecordWith | ArrayWith | Field
    | Index | App | Unary | Binary | Logic | Cons | Pipe | Assign | Seq | If | Match | Fun | Let | LoopFor | LoopWhile
    | Shift | Reset | Annot | Coerce
)  # fmt: skip


# ---- declarations -----------------------------------------------------------------------------------------------


@node
class DeclLet(Node):
    rec: bool
    bindings: tuple[Binding, ...]
    export: bool = False
    doc: str = ""


@node
class Param(Node):
    """A parameter of a type: `'a` (a type) or `n` (a size)."""

    name: str
    is_size: bool


@node
class TypeDef(Node):
    name: str
    params: tuple[Param, ...]
    body: Variants | Fields | Type  # a Type: an abbreviation
    doc: str = ""


@node
class Variants(Node):
    cases: tuple[tuple[str, Type | None, Span], ...]


@node
class Fields(Node):
    fields: tuple[tuple[str, Type, Span], ...]


@node
class DeclType(Node):
    defs: tuple[TypeDef, ...]


@node
class DeclImport(Node):
    target: str  # a module's name, or a path when `is_path`
    is_path: bool
    alias: str | None


@node
class DeclOpen(Node):
    name: str


@node
class DeclExtern(Node):
    symbol: str
    name: str
    type: Type
    doc: str = ""


@node
class DeclDo(Node):
    body: Expr


@node
class DeclExpect(Node):
    name: str
    body: Expr


Decl = DeclLet | DeclType | DeclImport | DeclOpen | DeclExtern | DeclDo | DeclExpect


@node
class Comment:
    """A comment as written, with its span; the formatter restores it."""

    span: Span
    text: str


@node
class File(Node):
    decls: tuple[Decl, ...]
    comments: tuple[Comment, ...]
