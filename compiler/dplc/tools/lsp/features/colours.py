"""Semantic tokens: the kinds of names, for colours, which a grammar of regular expressions cannot determine."""

from __future__ import annotations

from itertools import pairwise

from dpl.core import ty
from dpl.types.library import library
from dpl.types.solve.meta import prune
from dpl.types.state.env import Primitive, Value
from lsprotocol import types as lsp

from dplc.tools.lsp.text.documents import Document
from dplc.tools.lsp.text.links import FIRST
from dplc.tools.lsp.text.names import Symbol, Target, Use

TYPES = (
    "function", "parameter", "variable", "type", "typeParameter", "enumMember", "namespace", "property", "operator",
)  # fmt: skip
MODIFIERS = ("declaration", "defaultLibrary", "readonly")
LEGEND = lsp.SemanticTokensLegend(list(TYPES), list(MODIFIERS))

KINDS = {
    "parameter": "parameter", "function": "function", "value": "variable", "local": "variable", "size": "typeParameter",
    "type": "type", "typevar": "typeParameter", "constructor": "enumMember", "field": "property", "module": "namespace",
}  # fmt: skip
SPACES = {"types": "type", "constructors": "enumMember", "fields": "property", "modules": "namespace"}


def tokens(document: Document) -> lsp.SemanticTokens:
    """The tokens of a text, in order, without those that overlap an earlier one."""
    document.check()
    found: list[tuple[int, int, int, int, int]] = []
    last = -1
    for page in document.pages:
        for use in (use for names in document.names(page) for use in names.uses):
            start = page.now(use.span.start)
            if start <= last or use.span.end == use.span.start:
                continue
            target = document.links[use]
            kind = kind_of(document, use, target)
            if kind is not None:
                last = start
                here = document.lines.position(start)
                length = document.lines.length(document.text[start : page.now(use.span.end)])
                bits = (1 if use.declares else 0) | (2 if from_library(target) else 0)
                found.append((here.line, here.character, length, TYPES.index(kind), bits))
    return lsp.SemanticTokens(relative(found))


def relative(found: list[tuple[int, int, int, int, int]]) -> list[int]:
    """The tokens encoded for the protocol: each position relative to the previous one."""
    data: list[int] = []
    for before, (line, start, length, kind, bits) in pairwise([(0, 0, 0, 0, 0), *found]):
        data += [line - before[0], start - before[1] if line == before[0] else start, length, kind, bits]
    return data


def kind_of(document: Document, use: Use, target: Target | None) -> str | None:
    if use.space != "values":
        return SPACES[use.space] if not isinstance(target, Symbol) else KINDS[target.kind]
    if not use.name[:1].isalpha() and use.name[:1] != "_":
        return "operator"
    if isinstance(target, Symbol):
        return "variable" if use.name == "_" else KINDS[target.kind]
    if target is None:
        return None
    exports = document.around.modules.get(target.module)
    entry = exports.values.get(target.name) if exports else None
    entry = entry or (library().primitives.values.get(target.name) if target.module == FIRST else None)
    if isinstance(entry, Value | Primitive):
        return "function" if isinstance(prune(entry.scheme.ty), ty.Fn) else "variable"
    return None


def from_library(target: Target | None) -> bool:
    return target is not None and not isinstance(target, Symbol) and target.module in library().modules
