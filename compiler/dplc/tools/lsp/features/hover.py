"""Hover: the declaration under the cursor with its type, sizes, effect, documentation and derivatives."""

from __future__ import annotations

from dpl.core import ty
from dpl.source import Span
from dpl.types.solve.meta import Type, prune, prune_effect
from lsprotocol import types as lsp

from dplc.tools.lsp.features.calculus import about
from dplc.tools.lsp.features.describe import Description, describe, printer
from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.names import Use
from dplc.tools.lsp.text.pages import Page


def hover(document: Document, place: int) -> lsp.Hover | None:
    """The name at the cursor or, if there is none, the type of the smallest expression around it."""
    page = document.book.page_at(place)
    if page is None:
        return None
    document.check()
    use = document.use_at(place)
    described = describe(document, document.links.get(use)) if use else None
    offset = place - page.start + page.base
    found = None if described else innermost(document, page, offset)
    span = use.span if use and described else found[0] if found else None
    if span is None:
        return None
    text = in_words(document, page, use, described) if use and described else code(type_text(document, found))
    contents = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
    return lsp.Hover(contents, document.lines.range(*document.book.now(span)))


def in_words(document: Document, page: Page, use: Use, described: Description) -> str:
    parts = [code(described.text)]
    here = next((t for span, t in reversed(document.found(page).notes.expressions) if span == use.span), None)
    if here is not None:
        shown = printer(document).type(here)
        if described.type and shown != described.type.partition(" with ")[0] and not use.declares:
            parts.append(f"here\n{code(shown)}")
        if captures(here):
            parts.append("captures its caller's context, up to the nearest `reset`")
    if described.doc:
        parts.append(described.doc)
    parts += about(document, document.links.get(use))
    return "\n\n".join(parts)


def innermost(document: Document, page: Page, offset: int) -> tuple[Span, Type] | None:
    """The smallest expression around an offset, with its type."""
    token = page.token_at(offset)
    if token is None or token.kind == "$END":
        return None
    around = [e for e in document.found(page).notes.expressions if e[0].start <= token.start and token.end <= e[0].end]
    return min(around, key=lambda e: e[0].end - e[0].start) if around else None


def type_text(document: Document, found: tuple[Span, Type] | None) -> str:
    return printer(document).type(found[1]) if found else ""


def code(text: str) -> str:
    return f"```dpl\n{text}\n```"


def captures(t: Type) -> bool:
    """True if calling a function of this type may capture the context (control effect)."""
    t = prune(t)
    while isinstance(t, ty.Fn):
        if isinstance(prune_effect(t.eff), ty.Ctl):
            return True
        t = prune(t.result)
    return False
