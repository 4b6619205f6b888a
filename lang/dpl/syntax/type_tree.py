"""The syntax tree of types and sizes in annotations."""

from __future__ import annotations

from dpl.node import node
from dpl.source import Span


@node
class Node:
    span: Span


@node
class SizeNum(Node):
    value: int


@node
class SizeVar(Node):
    name: str


@node
class SizeOp(Node):
    op: str  # + - *
    left: Size
    right: Size


@node
class SizeUnknown(Node):
    """`?`"""


@node
class SizeOpen(Node):
    """`float[_]`: an inferred size."""


Size = SizeNum | SizeVar | SizeOp | SizeUnknown | SizeOpen


@node
class TyVar(Node):
    name: str  # without the quote


@node
class TyName(Node):
    """A type name with its arguments: `float`, `'a list`, `(n, m) layer`, `3 vec`.

    A bare lower-case name as an argument may be a type or a size (`n vec`).  It is read as a TyName without arguments;
    inference decides by the sort of the parameter."""

    name: str
    args: tuple[Type | Size, ...] = ()


@node
class TyTuple(Node):
    items: tuple[Type, ...]  # at least 2; `unit` is a TyName


@node
class TyFun(Node):
    arg: Type
    result: Type
    ctl: Type | None = None  # `a -{ctl r}-> b`


@node
class TyArray(Node):
    """`float[n, m]`: an array type; sizes are outermost first."""

    elem: Type
    sizes: tuple[Size, ...]


@node
class TyOpen(Node):
    """`_`: an inferred type, or an inferred size where an argument must be a size."""


Type = TyVar | TyName | TyTuple | TyFun | TyArray | TyOpen
