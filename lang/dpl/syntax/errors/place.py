"""The parser's position at a token that does not fit: tokens read, open constructs, possible next tokens."""

from __future__ import annotations

from collections.abc import Iterator

from dpl.diagnostics import Diagnostic
from dpl.node import node
from dpl.source import Source, Span
from dpl.syntax.automaton import Parser
from dpl.syntax.errors.brackets import begins_declaration
from dpl.syntax.lexer import Token


@node
class Place:
    """The position of a syntax error: `token` does not fit, `before` is the token read last."""

    parser: Parser
    source: Source
    tokens: list[Token]
    number: int

    @property
    def token(self) -> Token:
        """The token that does not fit."""
        return self.tokens[self.number]

    @property
    def before(self) -> Token:
        """The token before it."""
        return self.tokens[self.number - 1] if self.number else Token("", 0, 0, "")

    @property
    def after(self) -> Token:
        """The token after it."""
        return self.tokens[min(self.number + 1, len(self.tokens) - 1)]

    def span(self, token: Token) -> Span:
        """The span of a token; after an interpolation, only its first character."""
        after_hole = token.kind in ("INTERP_MIDDLE", "INTERP_CLOSE")
        return Span(self.source, token.start, token.start + 1 if after_hole else token.end)

    def due(self, word: str) -> bool:
        """True if this keyword or symbol could come next."""
        return self.parser.accepts(self.parser.tables.words[word])

    def ends_declaration(self) -> bool:
        """True if the token begins another declaration, or ends the file."""
        return self.token.kind == "$END" or begins_declaration(self.source, self.token)

    def unfinished(self) -> Iterator[tuple[str, Span]]:
        """Yields the keywords and brackets of incomplete constructs, innermost first."""
        for value, (start, end) in zip(reversed(self.parser.values), reversed(self.parser.spans), strict=True):
            if isinstance(value, bool):  # the value of a `let`
                yield "let", Span(self.source, start, end)
            elif isinstance(value, Token) and isinstance(value.value, str):
                yield value.value, Span(self.source, start, end)

    def begins_line(self, kind: str) -> bool:
        """True if the first token of this line is of the kind."""
        line = self.source.position(self.token.start)[0]
        return next(t for t in self.tokens if self.source.position(t.start)[0] == line).kind == kind

    def inside(self, *words: str) -> str:
        """The innermost unfinished one of these words, or ""."""
        return next((word for word, _ in self.unfinished() if word in words), "")

    def error(
        self, code: str, title: str, *helps: str, at: Span | None = None, note: str = "", labels=()
    ) -> Diagnostic:
        """An error at the token, unless another place is said."""
        return Diagnostic(code, title, at or self.span(self.token), note, tuple(labels), helps)
