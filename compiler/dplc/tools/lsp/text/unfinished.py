"""Tokens of half a declaration -> a tree of what is there.

let f x =                 let f x =
  let y = x * 2.0 in  ->    let y = x * 2.0 in
  y + (x                    y + (x)

What is missing at the end is put in as the grammar asks for it: closing brackets and keywords first, and a name that
stands for anything where an expression, pattern or type is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpl.source import Source
from dpl.syntax import tree
from dpl.syntax.automaton import Parser
from dpl.syntax.build import Builder
from dpl.syntax.docs import attach_docs
from dpl.syntax.lexer import Token
from dpl.syntax.tables import tables

ANYTHING = "\x00"  # a name that nobody can write
MOST = 400  # tokens put in
CLOSING = (")", "]", "}", "end", "in", "then", "with", "->", "while", "do", "=")


@dataclass(slots=True)
class Draft:
    """Half a declaration, up to a cursor at offset `at`; `parser` stands there, before what was put in."""

    at: int
    decls: tuple[tree.Decl, ...]
    tokens: list[Token]
    parser: Parser
    broken = True
    is_right = False


def drafted(source: Source, tokens: list[Token], at: int) -> Draft | None:
    """The declaration that tokens begin, with a name at the cursor that stands for anything, if one can be there."""
    parser = Parser(tables(), Builder(source), "file")
    if tokens and parser.feed(tokens, 0) is not None:
        return None
    names = [Token(kind, at, at, ANYTHING) for kind in ("LOWER", "UPPER") if parser.accepts(kind)]
    made = completed(source, [*tokens, *names[:1]], (), at)
    return Draft(at, made.decls if made else (), tokens, parser)


def completed(source: Source, tokens: Sequence[Token], comments: Sequence[tree.Comment], at: int) -> tree.File | None:
    """The tree of tokens that read well so far and stop at offset `at`; None if nothing can be made of them."""
    parser = Parser(tables(), Builder(source), "file")
    if tokens and parser.feed(list(tokens), 0) is not None:
        return None
    end = Token("$END", at, at, "")
    for _ in range(MOST):
        if parser.accepts("$END"):
            parser.feed([end], 0)
            return attach_docs(tree.File(parser.values[-1].span, parser.values[-1].decls, tuple(comments)))
        token = missing(parser, at)
        if token is None:
            return None
        parser.feed([token], 0)
    return None


def missing(parser: Parser, at: int) -> Token | None:
    """What could come next, the sooner to end."""
    words = parser.tables.words
    closing = [Token(words[word], at, at, word) for word in CLOSING]
    closing.insert(4, Token("INTERP_CLOSE", at, at, ("", "")))
    names = [Token(kind, at, at, ANYTHING) for kind in ("TYVAR", "LOWER", "UPPER", "STRING")]
    others = [Token(words[word], at, at, word) for word in ("<", ":", "->")]
    return next((token for token in (*closing, *names, *others) if parser.accepts(token.kind)), None)
