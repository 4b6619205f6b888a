"""Tokens of an incomplete declaration -> a syntax tree.

let f x =                 let f x =
  let y = x * 2.0 in  ->    let y = x * 2.0 in
  y + (x                    y + (x)

Missing tokens at the end are inserted as the grammar requires: closing brackets and keywords first, and a placeholder
name where an expression, pattern or type must follow.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import record
from dpl.source import Source
from dpl.syntax import tree
from dpl.syntax.automaton import Parser
from dpl.syntax.build import Builder
from dpl.syntax.docs import attach_docs
from dpl.syntax.lexer import Token
from dpl.syntax.tables import tables

ANYTHING = "\x00"  # the placeholder, a name that cannot be written
MOST = 400  # the most tokens inserted
CLOSING = (")", "]", "}", "end", "in", "then", "with", "->", "while", "do", "=")


@record
class Draft:
    """An incomplete declaration up to a cursor at offset `at`.  `parser` has its state there, before any insertion."""

    at: int
    decls: tuple[tree.Decl, ...]
    tokens: list[Token]
    parser: Parser
    broken = True
    is_right = False


def drafted(source: Source, tokens: list[Token], at: int) -> Draft | None:
    """The declaration that the tokens begin, with a placeholder name at the cursor if the grammar allows one.  None if
    the tokens do not parse."""
    parser = Parser(tables(), Builder(source), "file")
    if tokens and parser.feed(tokens, 0) is not None:
        return None
    names = [Token(kind, at, at, ANYTHING) for kind in ("LOWER", "UPPER") if parser.accepts(kind)]
    made = completed(source, [*tokens, *names[:1]], (), at)
    return Draft(at, made.decls if made else (), tokens, parser)


def completed(source: Source, tokens: Sequence[Token], comments: Sequence[tree.Comment], at: int) -> tree.File | None:
    """The tree of tokens that end at offset `at`, completed.  None if they do not parse or cannot be completed."""
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
    """A token that may come next, preferring those that complete the declaration; None if there is none."""
    words = parser.tables.words
    closing = [Token(words[word], at, at, word) for word in CLOSING]
    closing.insert(4, Token("INTERP_CLOSE", at, at, ("", "")))
    names = [Token(kind, at, at, ANYTHING) for kind in ("TYVAR", "LOWER", "UPPER", "STRING")]
    others = [Token(words[word], at, at, word) for word in ("<", ":", "->")]
    return next((token for token in (*closing, *names, *others) if parser.accepts(token.kind)), None)
