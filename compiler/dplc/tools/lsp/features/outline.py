"""The outline of a text: its declarations, with the constructors and fields of types."""

from __future__ import annotations

from dpl.source import Span
from dpl.syntax import tree
from lsprotocol import types as lsp

from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.names import Names, Symbol

KINDS = {
    "function": lsp.SymbolKind.Function,
    "value": lsp.SymbolKind.Variable,
    "type": lsp.SymbolKind.Class,
    "constructor": lsp.SymbolKind.EnumMember,
    "field": lsp.SymbolKind.Field,
    "module": lsp.SymbolKind.Module,
}


def symbols(document: Document) -> list[lsp.DocumentSymbol]:
    """The outline, in the order of the text."""
    return [made for names in document.all_names() for made in outline(document, names)]


def outline(document: Document, names: Names) -> list[lsp.DocumentSymbol]:
    if isinstance(names.decl, tree.DeclExpect):
        shown = lsp.SymbolKind.Event
        return [symbol(document, f"expect {names.decl.name!r}", shown, names.decl.span, names.decl.span)]
    found: list[lsp.DocumentSymbol] = []
    owners: dict[str, list[lsp.DocumentSymbol]] = {}
    for one in names.declares:
        if one.name in ("_", ""):
            continue
        made = symbol(document, one.name, KINDS.get(one.kind, lsp.SymbolKind.Variable), whole(one), one.span)
        if one.kind in ("constructor", "field") and one.owner in owners:
            owners[one.owner].append(made)
            continue
        if one.kind == "type":
            made.children = owners[one.name] = []
        found.append(made)
    return found


def whole(one: Symbol) -> Span:
    return one.whole if one.whole.contains(one.span) else one.span


def symbol(document: Document, name: str, kind: lsp.SymbolKind, around: Span, span: Span) -> lsp.DocumentSymbol:
    outer = document.lines.range(*document.book.now(around))
    return lsp.DocumentSymbol(name, kind, outer, document.lines.range(*document.book.now(span)))
