"""Diagnostics -> JSON, for editors and other programs.  The schema is `editors/message.schema.json`."""

from __future__ import annotations

from typing import Any

from dpl.diagnostics import Call, Diagnostic, unmarked
from dpl.render import render
from dpl.source import Source, Span


def as_json(d: Diagnostic) -> dict[str, Any]:
    """A diagnostic as JSON.  Lines and columns count from 1 and offsets from 0, both in code points; `utf16` is the
    column in UTF-16 code units, as editors count."""
    return {
        "code": d.code,
        "severity": d.severity,
        "title": unmarked(d.title),
        "note": unmarked(d.note),
        "span": span(d.span),
        "labels": [{"span": span(label.span), "text": unmarked(label.text)} for label in d.labels],
        "helps": list(d.helps),
        "facts": [{"name": name, "text": unmarked(text)} for name, text in d.facts],
        "path": [call(c) for c in d.path],
        "edits": [{"span": span(edit.span), "text": edit.text} for edit in d.edits],
        "rendered": render(d),
    }


def call(c: Call) -> dict[str, Any]:
    return {"name": c.name, "span": span(c.span), "about": c.about}


def span(s: Span | None) -> dict[str, Any] | None:
    if s is None:
        return None
    return {"file": s.source.name, "start": place(s.source, s.start), "end": place(s.source, s.end)}


def place(source: Source, offset: int) -> dict[str, int]:
    line, column = source.position(offset)
    before = source.line(line)[: column - 1]
    return {"line": line, "column": column, "offset": offset, "utf16": len(before.encode("utf-16-le")) // 2 + 1}
