"""Inlay hints: types that the text omits, shown where they could be written."""

from __future__ import annotations

from dpl.core import ty
from dpl.syntax import tree
from dpl.types.messages.pretty import Printer
from dpl.types.solve.meta import Meta, Type, prune
from lsprotocol import types as lsp

from dplc.tools.lsp.features.describe import printer, scheme_of
from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.names import Names

LONGEST = 60  # characters of a hint
SHOWN = ("value", "parameter", "local", "function")


def hints(document: Document, wanted: lsp.Range) -> list[lsp.InlayHint]:
    """The hints in a range, by their places."""
    start, end = document.lines.offset(wanted.start), document.lines.offset(wanted.end)
    document.check()
    found: list[lsp.InlayHint] = []
    for page in document.pages:
        if page.start < end and start < page.start + len(page.text):
            for names in document.names(page):
                found += of_declaration(document, names)
    return sorted(found, key=lambda hint: (hint.position.line, hint.position.character, hint.padding_left))


def of_declaration(document: Document, names: Names) -> list[lsp.InlayHint]:
    p = printer(document)
    results = {b.pattern.span: b for b in functions(names.decl)}
    found = []
    for symbol in (*names.declares, *names.symbols):
        if symbol.kind not in SHOWN or symbol.name.startswith("_") or symbol.annotated:
            continue
        scheme = scheme_of(document, symbol)
        if scheme is None:
            continue
        if symbol.span in results:
            found.append(result_hint(document, p, results[symbol.span], scheme.ty))
        elif symbol.kind != "function":
            found.append(shown(document, document.book.now(symbol.span)[1], p, scheme.ty))
    return [hint for hint in found if hint is not None]


def functions(decl: tree.Decl) -> list[tree.Binding]:
    """The bindings of functions without a result type, including local ones."""
    found: list[tree.Binding] = []
    waiting: list = [decl]
    while waiting:
        n = waiting.pop()
        if isinstance(n, tree.Binding) and n.params and n.annot is None:
            found.append(n)
        if isinstance(n, tuple):
            waiting += n
        elif isinstance(n, tree.Node):
            waiting += [getattr(n, name) for name in n.__match_args__ if name != "span"]
    return found


def result_hint(document: Document, p: Printer, b: tree.Binding, t: Type) -> lsp.InlayHint | None:
    """The hint with a function's result type, after its parameters."""
    for _ in b.params:
        t = prune(t)
        if not isinstance(t, ty.Fn):
            return None
        t = t.result
    return shown(document, document.book.now(b.params[-1].span)[1], p, t, after_space=True)


def shown(document: Document, place: int, p: Printer, t: Type, after_space: bool = False) -> lsp.InlayHint | None:
    if isinstance(prune(t), ty.Var | Meta):  # a type variable tells the reader nothing
        return None
    text = p.type(t)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}..."
    position = document.lines.position(place)
    return lsp.InlayHint(position, f": {text}", kind=lsp.InlayHintKind.Type, padding_left=after_space)
