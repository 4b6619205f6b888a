"""What a library offers to others than DPL: its exported definitions, and how their types look from outside.

A type is a `Shape`, whose `text` is in DPL's words.  The sizes of an array are texts, too; `labels` says what to call
those that have to be given along with the array, None for one that the type fixes.
"""

from __future__ import annotations

from collections.abc import Container

from dpl.core import term as c
from dpl.node import node
from dpl.source import Span


@node
class Number:
    """`bool i8 ... f64`"""

    name: str

    @property
    def text(self) -> str:
        return {"i64": "int", "f64": "float"}.get(self.name, self.name)


@node
class Text:
    @property
    def text(self) -> str:
        return "string"


@node
class Array:
    element: Number
    sizes: tuple[str, ...]
    labels: tuple[str | None, ...]

    @property
    def text(self) -> str:
        return f"{self.element.text}[{', '.join(self.sizes)}]"


@node
class Record:
    """`fields` as the record's declaration has them, with the sizes that it declares."""

    name: str
    fields: tuple[tuple[str, Shape], ...]

    @property
    def text(self) -> str:
        return f"{{ {'; '.join(f'{name} : {part.text}' for name, part in self.fields)} }}"


@node
class Tuple:
    """Unit has no items."""

    items: tuple[Shape, ...]

    @property
    def text(self) -> str:
        return " * ".join(item.text for item in self.items) or "unit"


Shape = Number | Text | Array | Record | Tuple


@node
class Parameter:
    """`text` is its type in DPL's words."""

    name: str
    shape: Shape
    text: str


@node
class Export:
    """An exported definition; a value has `parameters` None.  `entry` is the definition that others call: it takes unit
    if there are no parameters, and compares sizes.  `docs` is its documentation."""

    name: str
    parameters: tuple[Parameter, ...] | None
    result: Parameter
    docs: str
    span: Span
    entry: c.Def

    @property
    def signature(self) -> str:
        """`loss (w : float[n]) (x : float[n]) : float`"""
        given = "".join(f" ({p.name} : {p.text})" for p in self.parameters or ())
        return f"{self.name}{given} : {self.result.text}"


def unlike(name: str, taken: Container[str]) -> str:
    """The name, or one like it that is not taken."""
    while name in taken:
        name += "_"
    return name


def records(exports: list[Export]) -> dict[str, Record]:
    """The records that the exports mention, those that others contain first."""
    found: dict[str, Record] = {}

    def visit(shape: Shape) -> None:
        match shape:
            case Record(name, fields):
                for _, part in fields:
                    visit(part)
                found[name] = shape
            case Tuple(items):
                for item in items:
                    visit(item)
            case _:
                pass

    for export in exports:
        for parameter in (*(export.parameters or ()), export.result):
            visit(parameter.shape)
    return found
