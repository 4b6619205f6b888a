"""The tokenizer: a line of flat's text -> words, literals and signs; also reads types and constants.

y.1: f64[] = mul x.2 2.0      ->      y.1  :  f64  [  ]  =  mul  x.2  2.0
"""

from __future__ import annotations

import re
from ast import literal_eval
from typing import NoReturn

from dpl.diagnostics import DplError
from dpl.node import node
from dpl.regex import regex
from dpl.source import Source, Span

from dplc.flat import term as f
from dplc.flat.show import CONSTANT, WORD

NUMBERS = frozenset(("bool", *(f"{kind}{n}" for kind in "iu" for n in (8, 16, 32, 64)), "f16", "f32", "f64"))
TOKEN = regex(
    rf"""\s*(?:(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<quoted>`[^`]*`)|(?P<word>{WORD.pattern})|(?P<sign>\S))"""
)


@node
class Token:
    """`kind` is word (`text` is a name or a number), quoted (a name), string, sign, or end."""

    kind: str
    text: str
    start: int
    end: int


class Line:
    """The tokens of a line, read from left to right."""

    def __init__(self, source: Source, start: int, text: str) -> None:
        self.source = source
        self.start = start
        self.indent = len(text) - len(text.lstrip(" "))
        self.tokens = [_token(m, start) for m in TOKEN.finditer(text.rstrip())]
        self.tokens.append(Token("end", "", start + len(text), start + len(text)))
        self.at = 0

    def wrong(self, title: str, token: Token | None = None) -> NoReturn:
        """Raises E0101 at a token, or at the next one."""
        at = token or self.tokens[self.at]
        raise DplError.at("E0101", title, Span(self.source, at.start, max(at.end, at.start + 1)))

    def peek(self, ahead: int = 0) -> str:
        """The text of the token `ahead` places on; empty for a string, a quoted name, or the end."""
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.text if token.kind in ("word", "sign") else ""

    def done(self) -> bool:
        """True at the end of the line."""
        return self.tokens[self.at].kind == "end"

    def next(self) -> Token:
        """The next token, which is then behind.  At the end it stays."""
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        """Goes on if the next token is this text, and tells whether it is."""
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        """Goes on if the next token is this text, and raises an error otherwise."""
        if not self.accept(text):
            self.wrong(f"expected `{text}`")

    def finish(self) -> None:
        """Raises an error unless this is the end of the line."""
        if not self.done():
            self.wrong("expected the end of the line")

    def name(self) -> str:
        """The name that is the next token, perhaps in quotes."""
        token = self.tokens[self.at]
        if token.kind not in ("word", "quoted") or (token.kind == "word" and CONSTANT.fullmatch(token.text)):
            self.wrong("expected a name")
        self.at += 1
        return token.text

    def number(self) -> int:
        """The number that is the next token."""
        token = self.next()
        if not token.text.isdecimal():
            self.wrong("expected a number", token)
        return int(token.text)

    # ---- types

    def type(self) -> f.Type:
        """The type that comes next."""
        if self.accept("ref"):
            return f.Ref(self.type())
        if self.accept("res"):
            return f.Res(self.name())
        if self.accept("{"):
            ty = self.type()
            self.expect("}")
        elif self.peek() == "(":
            ty = f.Tup(self.types())
        else:
            ty = _named(self.name())
        if self.accept("["):
            rank = 1
            while self.accept(","):
                rank += 1
            self.expect("]")
            return f.Arr(ty, rank)
        return ty

    def types(self) -> tuple[f.Type, ...]:
        """`(f64, i64)`"""
        self.expect("(")
        types = []
        while not self.accept(")"):
            types.append(self.type())
            if self.peek() != ")":
                self.expect(",")
        return tuple(types)

    def literal(self) -> tuple[object, f.Type]:
        """A constant and its type."""
        token = self.next()
        value, ty = _literal(token)
        if token.kind == "sign" and token.text == "(":
            self.expect(")")
            value, ty = (), f.UNIT
        if self.accept(":"):
            ty = self.type()
        if ty is None:
            self.wrong("this is no constant", token)
        return value, ty


def _token(match: re.Match[str], start: int) -> Token:
    kind = match.lastgroup or "sign"
    return Token(kind, match[kind].strip("`"), start + match.start(kind), start + match.end(kind))


def _named(name: str) -> f.Type:
    if name in NUMBERS:
        return f.Num(name)
    return f.STR if name == "str" else f.Data(name)


def _literal(token: Token) -> tuple[object, f.Type | None]:
    if token.kind == "string":
        return literal_eval(token.text), f.STR
    if token.kind != "word" or not CONSTANT.fullmatch(token.text):
        return None, None
    match token.text:
        case "true" | "false":
            return token.text == "true", f.BOOL
        case "null":
            return None, None
        case text:
            try:
                return int(text), f.I64
            except ValueError:
                return float(text), f.F64
