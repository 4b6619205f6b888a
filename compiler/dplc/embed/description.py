"""exports -> their description for `embed/calls.py`, as data for JSON."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any

from dpl.diagnostics import DplError

from dplc.interface import Array, Export, Number, Parameter, Record, Shape, Text, Tuple, unlike


def describe(prefix: str, exports: Sequence[Export], keeps_state: bool) -> dict[str, Any]:
    """The description of a library.  The symbols of its functions begin with `prefix`."""
    return {"prefix": prefix, "keeps_state": keeps_state, "exports": [described(export) for export in exports]}


def described(export: Export) -> dict[str, Any]:
    if keyword.iskeyword(export.name):
        title = f"`{export.name}` cannot be exported to Python: it is a word of the language"
        raise DplError.at("E0570", title, export.span, helps=("export it under another name",))
    given = None if export.parameters is None else [parameter(p) for p in export.parameters]
    return {
        "name": export.name, "signature": export.signature, "docs": export.docs, "parameters": given,
        "result": parameter(export.result),
    }  # fmt: skip


def parameter(p: Parameter) -> dict[str, Any]:
    return {"name": named(p.name), "text": p.text, "shape": shape(p.shape)}


def named(name: str) -> str:
    """The name in Python: `class_` for the keyword `class`."""
    return unlike(name, keyword.kwlist)


def shape(of: Shape) -> dict[str, Any]:
    match of:
        case Number(name):
            return {"kind": "number", "name": name, "text": of.text}
        case Text():
            return {"kind": "text", "text": of.text}
        case Array(number, sizes, labels):
            return {"kind": "array", "element": number.name, "sizes": sizes, "labels": labels, "text": of.text}
        case Tuple(items):
            return {"kind": "tuple", "items": [shape(item) for item in items], "text": of.text}
        case Record(name, fields):
            parts = [(named(field), shape(part)) for field, part in fields]
            return {"kind": "record", "name": name, "fields": parts, "text": of.text}
