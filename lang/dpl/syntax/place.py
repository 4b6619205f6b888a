"""Where the parser stands when a token fits nowhere: what was read, what is not complete, what could come next."""

from __future__ import annotations

from collections.abc import Iterator

from dpl.diagnostics import Diagnostic
from dpl.node import node
from dpl.source import Source, Span
from dpl.syntax.automaton import Parser
from dpl.syntax.brackets import begins_declaration
from dpl.syntax.lexer import Token


@node
class Place:
    """Where the parser stands: `token` is what it cannot use, `before` the one it read last."""

    parser: Parser
    source: Source
    tokens: list[Token]
    number: int

    @property
    def token(self) -> Token:
        return self.tokens[self.number]

    @property
    def before(self) -> Token:
        return self.tokens[self.number - 1] if self.number else Token("", 0, 0, "")

    @property
    def after(self) -> Token:
        return self.tokens[min(self.number + 1, len(self.tokens) - 1)]

    def span(self, token: Token) -> Span:
        """Where a token is; of the text after a hole in an interpolated string, its first character."""
        after_hole = token.kind in ("INTERP_MIDDLE", "INTERP_CLOSE")
        return Span(self.source, token.start, token.start + 1 if after_hole else token.end)

    def due(self, word: str) -> bool:
        """Could this keyword or symbol come next?"""
        return self.parser.accepts(self.parser.tables.words[word])

    def ends_declaration(self) -> bool:
        return self.token.kind == "$END" or begins_declaration(self.source, self.token)

    def unfinished(self) -> Iterator[tuple[str, Span]]:
        """The keywords and brackets whose constructs are not complete, innermost first."""
        for value, (start, end) in zip(reversed(self.parser.values), reversed(self.parser.spans), strict=True):
            if isinstance(value, bool):  # what a `let` becomes
                yield "let", Span(self.source, start, end)
            elif isinstance(value, Token) and isinstance(value.value, str):
                yield value.value, Span(self.source, start, end)

    def inside(self, *words: str) -> str:
        """The innermost unfinished of these words."""
        return next((word for word, _ in self.unfinished() if word in words), "")

    def error(
        self, code: str, title: str, *helps: str, at: Span | None = None, note: str = "", labels=()
    ) -> Diagnostic:
        return Diagnostic(code, title, at or self.span(self.token), note, tuple(labels), helps)
