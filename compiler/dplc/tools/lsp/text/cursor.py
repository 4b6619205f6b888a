"""The declaration being typed, checked up to the cursor, with everything in scope there."""

from __future__ import annotations

from dpl.diagnostics import Diagnostic
from dpl.node import record
from dpl.types.messages.pretty import Printer
from dpl.types.state.notes import Notes

from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.links import Linker
from dplc.tools.lsp.text.names import Names, Symbol, names_of
from dplc.tools.lsp.text.pages import Page
from dplc.tools.lsp.text.unfinished import Draft, drafted

NAMES = ("LOWER", "QLOWER", "UPPER", "QUPPER")


@record
class Cursor:
    """The cursor in its declaration.  `word` is the part of a name before the cursor, `qualifier` the module before its
    point."""

    document: Document
    draft: Draft
    word: str
    qualifier: str
    notes: Notes
    names: list[Names]
    linker: Linker

    def symbols(self) -> dict[str, Symbol]:
        """The local names in scope; inner declarations come after outer ones and replace them."""
        found: dict[str, Symbol] = {}
        for names in self.names:
            found.update((symbol.name, symbol) for symbol in names.declares if names.early and symbol.space == "values")
            for symbol in names.symbols:
                inside = symbol.scope and symbol.scope.start <= self.draft.at <= symbol.scope.end
                if inside and symbol.space == "values" and symbol.span.end <= self.draft.at:
                    found[symbol.name] = symbol
        return found

    @property
    def printer(self) -> Printer:
        solver = self.document.checking.solver
        return Printer(solver.sizes if solver else None, self.document.around.name)

    @property
    def after_point(self) -> bool:
        """True after a point, where a field follows."""
        return bool(self.draft.tokens) and self.draft.tokens[-1].kind == "DOT"


def cursor_at(document: Document, place: int) -> Cursor | None:
    """The cursor at a place; None in comments and strings, and if the text before it cannot be parsed."""
    page = document.book.page_at(place)
    if page is None or open_at(page, at := place - page.start + page.base):
        return None
    tokens = [t for t in page.tokens if t.start < at and t.kind != "$END"]
    word = qualifier = ""
    if tokens and tokens[-1].end >= at:
        last = tokens[-1]
        text = document.book.text[last.start : at]
        if last.kind in NAMES or text.isalpha():
            qualifier, _, word = text.rpartition(".")
            tokens.pop()
        elif last.end > at:
            return None
    if len(tokens) > 1 and tokens[-1].kind == "DOT" and tokens[-2].kind in ("UPPER", "QUPPER"):
        if tokens[-2].end == tokens[-1].start:
            qualifier = str(tokens[-2].value)
            del tokens[-2:]
    draft = drafted(document.book, tokens, at)
    if draft is None:
        return None
    before = document.pages[: document.pages.index(page)]
    notes = document.check_draft(before, draft)
    linker = Linker(document)
    linker.links(page)
    return Cursor(document, draft, word, qualifier, notes, [names_of(d, tokens) for d in draft.decls], linker)


def open_at(page: Page, at: int) -> bool:
    """True if a place is in a comment or in an unclosed string."""
    if any(c.span.start < at < c.span.end or (c.text.startswith("--") and at == c.span.end) for c in page.comments):
        return True
    return any(d.code == "E0102" and d.span and d.span.start < at for d in page.lexical if not holed(page, d, at))


def holed(page: Page, d: Diagnostic, at: int) -> bool:
    """True if the unclosed part is the hole of an interpolated string, which contains names."""
    return any(t.kind in ("INTERP_OPEN", "INTERP_MIDDLE") and d.span and t.end == d.span.end for t in page.tokens)
