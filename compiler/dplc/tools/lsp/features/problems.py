"""Diagnostics -> the protocol's diagnostics, and the quick fixes for them."""

from __future__ import annotations

from collections.abc import Sequence

from dpl.diagnostics import Diagnostic, Edit, unmarked
from dpl.node import replace
from dpl.source import Span
from dpl.types.state.unbound import suggested
from lsprotocol import types as lsp
from pygls import uris

from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.pages import Book

MISSPELT = ("E0202", "E0203", "E0560", "E0561")  # a value, a type or the like, a module, a member
FADED = ("W0201", "W0203")  # never reached, never used


def diagnostics(document: Document) -> list[lsp.Diagnostic]:
    """All diagnostics of a text, in the order of the text."""
    found = [shown(document, d) for d in document.diagnostics()]
    return sorted(found, key=lambda d: (d.range.start.line, d.range.start.character))


def shown(document: Document, d: Diagnostic) -> lsp.Diagnostic:
    severity = lsp.DiagnosticSeverity.Error if d.severity == "error" else lsp.DiagnosticSeverity.Warning
    places = [(label.span, label.text) for label in d.labels]
    places += [(c.span, f"in the call of {c.name}{f'  ({c.about})' if c.about else ''}") for c in d.path if c.span]
    return lsp.Diagnostic(
        range=span_range(document, d.span),
        message=message(d),
        severity=severity,
        code=d.code,
        source="dpl",
        related_information=[
            lsp.DiagnosticRelatedInformation(location, unmarked(text) or "here")
            for span, text in places
            if (location := span_location(document, span))
        ],
        tags=[lsp.DiagnosticTag.Unnecessary] if d.code in FADED else None,
    )


def message(d: Diagnostic) -> str:
    """The title, note, facts and helps, one per line."""
    lines = [d.title, d.note, *(f"{name}: {text}" for name, text in d.facts), *(f"help: {h}" for h in d.helps)]
    return unmarked("\n".join(line for line in lines if line))


def span_range(document: Document, span: Span | None) -> lsp.Range:
    """The range of a span in this text; the beginning of the text if the span lies elsewhere."""
    if span is None or span.source is not document.book:
        return document.lines.range(0, 0)
    start, end = document.book.now(span)
    if start == end and start < len(document.text) and document.text[start] not in "\r\n":
        end += 1
    return document.lines.range(start, end)


def span_location(document: Document, span: Span) -> lsp.Location | None:
    if isinstance(span.source, Book):
        return lsp.Location(document.uri, span_range(document, span)) if span.source is document.book else None
    path = span.source.path
    other = document.workspace.document(path) if path else None
    uri = uris.from_fs_path(str(path.resolve())) if path else None
    if other is None or uri is None:
        return None
    return lsp.Location(uri, other.lines.range(span.start, span.end))


def actions(document: Document, wanted: lsp.Range) -> list[lsp.CodeAction]:
    """The quick fixes for the diagnostics in a range: their edits, and suggested names for an unknown name."""
    start, end = document.lines.offset(wanted.start), document.lines.offset(wanted.end)
    found: list[lsp.CodeAction] = []
    for d in document.diagnostics():
        if d.span is None or d.span.source is not document.book:
            continue
        first, last = document.book.now(d.span)
        if first <= end and start <= last:
            ways = [*([d.edits] if d.edits else []), *([edit] for edit in likely(d))]
            found += [action(document, d, edits, len(ways) == 1) for edits in ways]
    return found


def likely(d: Diagnostic) -> list[Edit]:
    """Edits that replace the unknown part of a name by a suggested name."""
    if d.span is None or d.code not in MISSPELT:
        return []
    start, end = d.span.start, d.span.end
    module_ends = start + len(d.span.text.rpartition(".")[0])
    member = replace(d.span, start=module_ends + 1)
    names = [name for help_ in d.helps for name in suggested(help_)]
    match d.code:
        case "E0560":  # the suggestion is a module, or a member of another one
            return [
                Edit(d.span if "." in name else replace(d.span, start=start, end=module_ends), name) for name in names
            ]
        case "E0561":
            return [Edit(d.span if "." in name else member, name) for name in names]
        case _:
            return [Edit(replace(d.span, end=end), name) for name in names]


def action(document: Document, d: Diagnostic, edits: Sequence[Edit], preferred: bool) -> lsp.CodeAction:
    changes = [lsp.TextEdit(document.lines.range(*document.book.now(e.span)), e.text) for e in edits]
    return lsp.CodeAction(
        title=title(d, edits),
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[shown(document, d)],
        is_preferred=preferred,
        edit=lsp.WorkspaceEdit(changes={document.uri: changes}),
    )


def title(d: Diagnostic, edits: Sequence[Edit]) -> str:
    if len(edits) == 1 and edits[0].span.text:
        old, new = edits[0].span.text.strip(), edits[0].text.strip()
        return f"replace `{old}` by `{new}`" if new else f"delete `{old}`"
    return d.helps[0] if d.helps else d.title
