"""The tree of types: sizes and types as annotations say them."""

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
    """`float[_]`: whatever is inferred there."""


Size = SizeNum | SizeVar | SizeOp | SizeUnknown | SizeOpen


@node
class TyVar(Node):
    name: str  # without the quote


@node
class TyName(Node):
    """`float`, `'a list`, `(n, m) layer`, `3 vec`.  An argument that is a bare lower-case name may be a type or a
    size (`n vec`): it is read as a TyName without arguments, and inference decides by the parameter's sort."""

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
    """`float[n, m]`: sizes outermost first."""

    elem: Type
    sizes: tuple[Size, ...]


@node
class TyOpen(Node):
    """`_`: whatever is inferred there; a size, as an argument of a type that takes one there."""


Type = TyVar | TyName | TyTuple | TyFun | TyArray | TyOpen
