"""The tree: what the text says, nothing added.  Every node knows its span.

A name is a string; a qualified name keeps its dots (`Nn.relu`).  Operators are names too (`+`, `<+>`).
`&&`, `||` are `Logic`; all other infix operators are `Binary` with the operator's name, looked up in scope.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpl.source import Span


@dataclass(frozen=True, slots=True)
class Node:
    span: Span


# ---- sizes and types ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeNum(Node):
    value: int


@dataclass(frozen=True, slots=True)
class SizeVar(Node):
    name: str


@dataclass(frozen=True, slots=True)
class SizeOp(Node):
    op: str  # + - *
    left: Size
    right: Size


@dataclass(frozen=True, slots=True)
class SizeUnknown(Node):
    """`?`"""


Size = SizeNum | SizeVar | SizeOp | SizeUnknown


@dataclass(frozen=True, slots=True)
class TyVar(Node):
    name: str  # without the quote


@dataclass(frozen=True, slots=True)
class TyName(Node):
    """`float`, `'a list`, `(n, m) layer`, `3 vec`.  An argument that is a bare lower-case name may be a type or a
    size (`n vec`): it is read as a TyName without arguments, and inference decides by the parameter's sort."""

    name: str
    args: tuple[Type | Size, ...] = ()


@dataclass(frozen=True, slots=True)
class TyTuple(Node):
    items: tuple[Type, ...]  # at least 2; `unit` is a TyName


@dataclass(frozen=True, slots=True)
class TyFun(Node):
    arg: Type
    result: Type
    ctl: Type | None = None  # `a -{ctl r}-> b`


@dataclass(frozen=True, slots=True)
class TyArray(Node):
    """`float[n, m]`: sizes outermost first."""

    elem: Type
    sizes: tuple[Size, ...]


Type = TyVar | TyName | TyTuple | TyFun | TyArray


# ---- patterns ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PatWild(Node):
    pass


@dataclass(frozen=True, slots=True)
class PatVar(Node):
    name: str


@dataclass(frozen=True, slots=True)
class PatLit(Node):
    """A number (sign included), string or boolean; `suffix` as in Lit."""

    value: int | float | str | bool
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class PatTuple(Node):
    items: tuple[Pattern, ...]  # () is unit


@dataclass(frozen=True, slots=True)
class PatCon(Node):
    name: str
    arg: Pattern | None = None


@dataclass(frozen=True, slots=True)
class PatCons(Node):
    head: Pattern
    tail: Pattern


@dataclass(frozen=True, slots=True)
class PatList(Node):
    items: tuple[Pattern, ...]  # `[]` is the empty list (or array: by its type)


@dataclass(frozen=True, slots=True)
class PatArray(Node):
    items: tuple[Pattern, ...]  # at least one


@dataclass(frozen=True, slots=True)
class PatRecord(Node):
    fields: tuple[tuple[str, Pattern], ...]
    open: bool  # `{ x; _ }`


@dataclass(frozen=True, slots=True)
class PatAs(Node):
    pattern: Pattern
    name: str


@dataclass(frozen=True, slots=True)
class PatOr(Node):
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class PatAnnot(Node):
    pattern: Pattern
    type: Type


Pattern = (
    PatWild | PatVar | PatLit | PatTuple | PatCon | PatCons | PatList | PatArray | PatRecord | PatAs | PatOr | PatAnnot
)


# ---- expressions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lit(Node):
    """A number, string or boolean.  `suffix` is `i32`, `f32`, ... or empty; `text` is the literal as written."""

    value: int | float | str | bool
    suffix: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Interp(Node):
    """`$"..."`: strings, and expressions with their format (`.4f`, or empty)."""

    parts: tuple[str | tuple[Expr, str], ...]


@dataclass(frozen=True, slots=True)
class Var(Node):
    """A value's name, perhaps qualified, or an operator in parentheses."""

    name: str


@dataclass(frozen=True, slots=True)
class Con(Node):
    """A constructor; applied by App."""

    name: str


@dataclass(frozen=True, slots=True)
class Tuple(Node):
    items: tuple[Expr, ...]  # () is unit


@dataclass(frozen=True, slots=True)
class ListLit(Node):
    items: tuple[Expr, ...]  # `[]`, `[x;]`, `[x; y]`


@dataclass(frozen=True, slots=True)
class ArrayLit(Node):
    items: tuple[Expr, ...]  # at least one


@dataclass(frozen=True, slots=True)
class ForRange(Node):
    name: str  # `_` for none
    count: Expr


@dataclass(frozen=True, slots=True)
class ForIn(Node):
    pattern: Pattern
    array: Expr


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    clauses: tuple[ForRange | ForIn, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Record(Node):
    fields: tuple[tuple[str, Expr], ...]  # `{ x; y = e }`: x stands for x = x


@dataclass(frozen=True, slots=True)
class RecordWith(Node):
    record: Expr
    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class ArrayWith(Node):
    """`{ a with [i, j] = e }`; several updates separated by `;` are applied in order."""

    array: Expr
    updates: tuple[tuple[tuple[Expr, ...], Expr], ...]


@dataclass(frozen=True, slots=True)
class Field(Node):
    record: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Slice(Node):
    low: Expr | None
    high: Expr | None


@dataclass(frozen=True, slots=True)
class Index(Node):
    array: Expr
    indices: tuple[Expr | Slice, ...]


@dataclass(frozen=True, slots=True)
class App(Node):
    fn: Expr
    arg: Expr


@dataclass(frozen=True, slots=True)
class Unary(Node):
    op: str  # - (negation) or ! (dereference); `not` is a function
    arg: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Any infix operator but `&&`, `||`, `::`, `|>`, `:=`; `op_span` is the operator's own place."""

    op: str
    left: Expr
    right: Expr
    op_span: Span


@dataclass(frozen=True, slots=True)
class Logic(Node):
    op: str  # && ||
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Cons(Node):
    head: Expr
    tail: Expr


@dataclass(frozen=True, slots=True)
class Pipe(Node):
    arg: Expr
    fn: Expr


@dataclass(frozen=True, slots=True)
class Assign(Node):
    ref: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Seq(Node):
    first: Expr
    second: Expr


@dataclass(frozen=True, slots=True)
class If(Node):
    cond: Expr
    then: Expr
    else_: Expr | None


@dataclass(frozen=True, slots=True)
class Arm(Node):
    pattern: Pattern
    guard: Expr | None
    body: Expr


@dataclass(frozen=True, slots=True)
class Match(Node):
    scrutinee: Expr
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Fun(Node):
    params: tuple[Pattern, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Binding(Node):
    """`f p1 p2 : t = e`, or `pattern = e` when there are no parameters."""

    pattern: Pattern
    params: tuple[Pattern, ...]
    annot: Type | None
    body: Expr


@dataclass(frozen=True, slots=True)
class Let(Node):
    rec: bool
    bindings: tuple[Binding, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class LoopFor(Node):
    state: Pattern
    init: Expr
    index: str  # `_` for none
    count: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class LoopWhile(Node):
    state: Pattern
    init: Expr
    cond: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class Shift(Node):
    name: str
    body: Expr


@dataclass(frozen=True, slots=True)
class Reset(Node):
    body: Expr


@dataclass(frozen=True, slots=True)
class Annot(Node):
    expr: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Coerce(Node):
    """`(e :> t)`: sizes checked when it runs."""

    expr: Expr
    type: Type


Expr = (
    Lit | Interp | Var | Con | Tuple | ListLit | ArrayLit | Comprehension | Record | RecordWith | ArrayWith | Field
    | Index | App | Unary | Binary | Logic | Cons | Pipe | Assign | Seq | If | Match | Fun | Let | LoopFor | LoopWhile
    | Shift | Reset | Annot | Coerce
)  # fmt: skip


# ---- declarations -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclLet(Node):
    rec: bool
    bindings: tuple[Binding, ...]
    export: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Param(Node):
    """A parameter of a type: `'a` (a type) or `n` (a size)."""

    name: str
    is_size: bool


@dataclass(frozen=True, slots=True)
class TypeDef(Node):
    name: str
    params: tuple[Param, ...]
    body: Variants | Fields | Type  # a Type: an abbreviation
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Variants(Node):
    cases: tuple[tuple[str, Type | None, Span], ...]


@dataclass(frozen=True, slots=True)
class Fields(Node):
    fields: tuple[tuple[str, Type, Span], ...]


@dataclass(frozen=True, slots=True)
class DeclType(Node):
    defs: tuple[TypeDef, ...]


@dataclass(frozen=True, slots=True)
class DeclImport(Node):
    target: str  # a module's name, or a path when `is_path`
    is_path: bool
    alias: str | None


@dataclass(frozen=True, slots=True)
class DeclOpen(Node):
    name: str


@dataclass(frozen=True, slots=True)
class DeclExtern(Node):
    symbol: str
    name: str
    type: Type
    doc: str = ""


@dataclass(frozen=True, slots=True)
class DeclDo(Node):
    body: Expr


@dataclass(frozen=True, slots=True)
class DeclExpect(Node):
    name: str
    body: Expr


Decl = DeclLet | DeclType | DeclImport | DeclOpen | DeclExtern | DeclDo | DeclExpect


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment as written, with its place; the formatter puts it back."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class File(Node):
    decls: tuple[Decl, ...]
    comments: tuple[Comment, ...]
