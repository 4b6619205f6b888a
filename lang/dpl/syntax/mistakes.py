"""a token that fits nowhere -> what to say about it."""

from __future__ import annotations

from dpl.diagnostics import Diagnostic
from dpl.source import Source, Span
from dpl.syntax.lexer import Token


def unbalanced(source, tokens): return []
def foreign_operators(source, tokens): return []
def begins_declaration(source: Source, token: Token) -> bool:
    return token.kind in ("LET","TYPE","DO","EXPORT","EXPECT","IMPORT","OPEN","EXTERN") and (token.start == 0 or source.text[token.start - 1] == "\n")
def explain(parser, tokens, number):
    t = tokens[number]
    return Diagnostic("E0101", f"unexpected `{t.value}`; expected one of {parser.acceptable()}", Span(parser.builder.source, t.start, t.end))
