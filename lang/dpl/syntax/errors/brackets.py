"""tokens -> errors about unbalanced brackets, reported at the opening bracket.

let f x = (x + 1        the parser would complain at `let`; the mistake is the `(`
let g y = 2
"""

from __future__ import annotations

from bisect import bisect_right

from dpl.diagnostics import Diagnostic, Label
from dpl.source import Source, Span
from dpl.syntax.lexer import Token

_CLOSERS = {
    "LPAR": "RPAR",
    "LSQB": "RSQB",
    "INDEX": "RSQB",
    "LBRACE": "RBRACE",
    "CTL": "RBRACE",
    "BEGIN": "END",
    "INTERP_OPEN": "INTERP_CLOSE",
}
_WRITTEN = {"RPAR": ")", "RSQB": "]", "RBRACE": "}", "END": "end", "INTERP_CLOSE": "}"}
DEEPEST = 1000  # the deepest nesting; type checking can take time quadratic in it
_DECLARES = frozenset(("LET", "TYPE", "DO", "EXPORT", "EXPECT", "IMPORT", "OPEN", "EXTERN"))


def begins_declaration(source: Source, token: Token) -> bool:
    """True for the keyword of a declaration at the left margin."""
    return token.kind in _DECLARES and source.text[token.start - 1 : token.start] in ("", "\n")


class Declarations:
    """The starts of declarations, as far as the margin shows them, for sorting problems by declaration."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.starts = [t.start for t in tokens if begins_declaration(source, t)]

    def number(self, diagnostic: Diagnostic) -> int:
        return bisect_right(self.starts, diagnostic.span.start if diagnostic.span else 0)


def unbalanced(source: Source, tokens: list[Token]) -> list[Diagnostic]:
    """Errors about brackets, at most one per declaration."""
    if _is_balanced(tokens):
        return []
    problems: list[Diagnostic] = []
    opened: list[Token] = []
    reported = False
    for token in tokens:
        if token.kind == "$END" or begins_declaration(source, token):
            if opened and not reported:
                problems.append(_unclosed(source, opened[-1], token))
            opened, reported = [], False
        elif token.kind in _CLOSERS:
            opened.append(token)
        elif token.kind == "END" and all(t.kind != "BEGIN" for t in opened):
            pass  # a keyword where a name should be: the parser reports it
        elif token.kind in _WRITTEN and not reported:
            if opened and _CLOSERS[opened[-1].kind] == token.kind:
                opened.pop()
            else:
                reported = True
                problems.append(_wrong_closer(source, opened, token))
    return problems


def too_deep(source: Source, tokens: list[Token]) -> list[Diagnostic]:
    """An error at the first bracket that is nested too deeply; [] if there is none.

    The brackets must match.  Parentheses that contain only parentheses do not count."""
    idle = _idle(tokens)
    depth = 0
    for place, token in enumerate(tokens):
        if place in idle:
            continue
        if token.kind in _CLOSERS:
            depth += 1
            if depth > DEEPEST:
                title = f"brackets are nested more than {DEEPEST} deep"
                helps = ("name what is inside, `let inner = ... in`, or make it by a function",)
                return [Diagnostic("E0110", title, _span(source, token), helps=helps)]
        elif token.kind in _WRITTEN:
            depth -= 1
    return []


def _idle(tokens: list[Token]) -> set[int]:
    """The indices of parentheses that contain only parentheses."""
    found: set[int] = set()
    opened: list[int] = []
    inner = (-1, -1)  # the last pair closed
    for place, token in enumerate(tokens):
        if token.kind in _CLOSERS:
            opened.append(place)
        elif token.kind in _WRITTEN and opened:
            start = opened.pop()
            if token.kind == "RPAR" and inner == (start + 1, place - 1) and tokens[start + 1].kind == "LPAR":
                found |= {start, place}
            inner = (start, place)
    return found


def _is_balanced(tokens: list[Token]) -> bool:
    due: list[str] = []
    for token in tokens:
        if closer := _CLOSERS.get(token.kind):
            due.append(closer)
        elif token.kind in _WRITTEN and (token.kind != "END" or "END" in due) and (not due or due.pop() != token.kind):
            return False
    return not due


def _unclosed(source: Source, opener: Token, end: Token) -> Diagnostic:
    closer = _WRITTEN[_CLOSERS[opener.kind]]
    what = "the file ends" if end.kind == "$END" else "the next declaration begins"
    label = Label(Span(source, end.start, end.end), f"{what} before its `{closer}`")
    return Diagnostic("E0102", f"this `{_shown(opener)}` is never closed", _span(source, opener), labels=(label,))


def _wrong_closer(source: Source, opened: list[Token], closer: Token) -> Diagnostic:
    if not opened:
        return Diagnostic("E0103", f"this `{_shown(closer)}` closes nothing", _span(source, closer))
    due = _WRITTEN[_CLOSERS[opened[-1].kind]]
    label = Label(_span(source, opened[-1]), f"opened here, to be closed by `{due}`")
    return Diagnostic("E0103", f"expected `{due}`, found `{_shown(closer)}`", _span(source, closer), labels=(label,))


def _shown(token: Token) -> str:
    match token.kind:
        case "INTERP_OPEN":
            return "{"
        case "INTERP_CLOSE":
            return "}"
        case "CTL":
            return "-{"
        case _:
            return str(token.value)


def _span(source: Source, token: Token) -> Span:
    """The span of the bracket itself.  In an interpolated string, it is the last character of the token."""
    return Span(source, token.end - 1 if token.kind == "INTERP_OPEN" else token.start, token.end)
