"""The interface of a library to other languages: its exported definitions and the shapes of their types.

A type is a `Shape`; its `text` is in DPL's syntax.  The sizes of an array are texts too.  `labels` are the names of the
sizes that the caller must pass with the array, and None for each size that the type fixes.
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
    """A record; `fields` are those of its declaration, with the declared sizes."""

    name: str
    fields: tuple[tuple[str, Shape], ...]

    @property
    def text(self) -> str:
        return f"{{ {'; '.join(f'{name} : {part.text}' for name, part in self.fields)} }}"


@node
class Tuple:
    """A tuple; unit has no items."""

    items: tuple[Shape, ...]

    @property
    def text(self) -> str:
        return " * ".join(item.text for item in self.items) or "unit"


Shape = Number | Text | Array | Record | Tuple


@node
class Parameter:
    """A parameter or a result; `text` is its type in DPL's syntax."""

    name: str
    shape: Shape
    text: str


@node
class Export:
    """An exported definition; for a value, `parameters` is None.  `entry` is the definition that callers from outside
    use: it checks sizes, and takes unit if there are no parameters.  `docs` is the documentation."""

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
    """The name, with `_` appended until it is not taken."""
    while name in taken:
        name += "_"
    return name


def records(exports: list[Export]) -> dict[str, Record]:
    """The records that the exports mention; a record comes after those that it contains."""
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
