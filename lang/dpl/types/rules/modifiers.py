"""Definitions that read like those of another language: `let mut x = 1` and `let float x = 1.0` define functions."""

from __future__ import annotations

import re

from dpl.diagnostics import Diagnostic, Edit
from dpl.source import Span
from dpl.syntax import tree
from dpl.syntax.foreign import without_modifier


def modified(b: tree.Binding) -> Diagnostic | None:
    """The warning for a function that has the name of a modifier or of a type, and does not use its only parameter."""
    if not (isinstance(b.pattern, tree.PatVar) and len(b.params) == 1 and isinstance(b.params[0], tree.PatVar)):
        return None
    word, name = b.pattern.name, b.params[0].name
    helps = without_modifier(word, name)
    if not helps or name.startswith("_") or re.search(rf"(?<![\w']){re.escape(name)}(?![\w'])", b.body.span.text):
        return None
    title = f"this defines a function `{word}`, which does not use its parameter `{name}`"
    edits = (Edit(Span(b.span.source, b.pattern.span.start, b.params[0].span.start), ""),)
    return Diagnostic("W0212", title, b.pattern.span, helps=helps, edits=edits)
