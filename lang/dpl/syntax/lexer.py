"""The lexer: text -> tokens.

    f xs[1] $"{x:.2f}!"   ->   LOWER f, LOWER xs, INDEX [, INT 1, RSQB ], INTERP_OPEN, LOWER x, INTERP_CLOSE (.2f, !)

It is written by hand because regular expressions cannot express three things: comments nest, expressions stand inside
strings, and a bracket right after an operand means indexing.  Comments are collected separately, for the formatter and
the documentation.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dpl.diagnostics import Diagnostic
from dpl.regex import regex
from dpl.source import Source, Span
from dpl.syntax.characters import CHARACTERS
from dpl.syntax.tables import Tables
from dpl.syntax.tree import Comment


class Token(NamedTuple):
    """A token; `kind` is a terminal of the grammar.

    `value` is a name, the text of a number, the content of a string, or (format, string) around an expression."""

    kind: str
    start: int
    end: int
    value: str | tuple[str, str]


_SYMBOL = r"!$%&*+\-./<=>?@^|~"
_LEXEME = regex(
    rf"""(?P<space>[ \t\r\n\f\ufeff]+)
    |(?P<word>[^\W\d][\w']*)
    |(?P<number>0[xX][0-9a-fA-F_]+(?:[iu]\d+)? | 0[bB][01_]+(?:[iu]\d+)? | 0[oO][0-7_]+(?:[iu]\d+)?
               |\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?\d[\d_]*)?(?:[iuf]\d+)?)
    |(?P<bracket>[(](?!\*)|[)\]}}[{{,;])
    |(?P<line>--[^\n]*)
    |(?P<block>\(\*)
    |(?P<control>-\{{\s*ctl\b)
    |(?P<interp>\$")
    |(?P<string>")
    |(?P<colon>:[:=>]?)
    |(?P<symbol>(?:(?!--|\$")[{_SYMBOL}])+)
    |(?P<variable>'[^\W\d]\w*)
    """,
    re.VERBOSE,
)
_QUALIFIED = regex(r"\.([^\W\d][\w']*)")
_COMMENT_PART = regex(r'\(\*|\*\)|"')
_STRING_PART = regex(r'[^"\\]*')
_INTERP_PART = regex(r'[^"\\{}]*')
_ESCAPE = regex(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|\n[ \t]*|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\", "{": "{", "}": "}"}

_OPERANDS = frozenset(("LOWER", "QLOWER", "RPAR", "RSQB", "RBRACE"))  # a bracket right after one of these indexes it
_PREFIXES = regex(r"(?:!(?!=$)|~|\?).*")


class Lexer:
    """Reads one source, or `text` in place of its text.  `tokens` ends with `$END`; errors go to `problems`, and
    reading continues."""

    def __init__(self, source: Source, tables: Tables, text: str | None = None) -> None:
        self.source = source
        self.text = source.text if text is None else text
        self.words = tables.words
        self.tokens: list[Token] = []
        self.comments: list[Comment] = []
        self.problems: list[Diagnostic] = []
        self.holes: list[tuple[int, int]] = []  # enclosing interpolations: open brackets outside, start
        self.depth = 0  # open brackets in the innermost interpolation
        self.at = 0

    def read(self) -> Lexer:
        """Reads the whole text.  Problems are kept, and reading goes on behind them."""
        match, text, end = _LEXEME.match, self.text, len(self.text)
        while self.at < end:
            found = match(text, self.at)
            if found is None:
                self.stray_character()
                continue
            start, self.at = found.span()
            kind = found.lastgroup or ""
            if kind != "space":
                getattr(self, kind)(start, found.group())
        if self.holes:
            start = self.holes[-1][1]
            self.problem("E0102", "this `{` of an interpolated string is never closed", start, start + 1)
        self.put("$END", end, end, "")
        return self

    def put(self, kind: str, start: int, end: int, value: str | tuple[str, str]) -> None:
        """Adds a token."""
        self.tokens.append(Token(kind, start, end, value))

    def problem(self, code: str, title: str, start: int, end: int, *helps: str, note: str = "") -> None:
        self.problems.append(Diagnostic(code, title, Span(self.source, start, end), note=note, helps=helps))

    # ---- words, numbers, symbols -------------------------------------------------------------------------------

    def word(self, start: int, word: str) -> None:
        if kind := self.words.get(word):
            self.put(kind, start, self.at, word)
            return
        qualified = False
        last = word
        while last[0].isupper() and (more := _QUALIFIED.match(self.text, self.at)):
            qualified, last, self.at = True, more.group(1), more.end()
        kind = "UPPER" if last[0].isupper() else "LOWER"
        self.put("Q" + kind if qualified else kind, start, self.at, self.text[start : self.at])

    def number(self, start: int, text: str) -> None:
        rest = re.compile(r"\w*").match(self.text, self.at)
        if rest and rest.group():
            self.at = rest.end()
            self.problem(
                "E0105",
                f"`{self.text[start : self.at]}` is no number",
                start,
                self.at,
                "a name does not start with a digit; suffixes are i8 ... i64, u8 ... u64, f16, f32, f64",
            )
        body = text if text[:2] in ("0x", "0X") else text.lower()
        is_float = body[:2] not in ("0x", "0X", "0b", "0o") and any(c in body for c in ".ef")
        self.put("FLOAT" if is_float else "INT", start, self.at, text)

    def bracket(self, start: int, text: str) -> None:
        kind = self.words[text]
        if text in "([{":
            self.depth += 1
            if text == "[" and self.tokens and self.tokens[-1].end == start and self.tokens[-1].kind in _OPERANDS:
                kind = "INDEX"
        elif text in ")]}":
            if text == "}" and self.depth == 0 and self.holes:
                self.after_hole(start, "")
                return
            self.depth -= 1
        self.put(kind, start, self.at, text)

    def control(self, start: int, text: str) -> None:
        self.depth += 1
        self.put("CTL", start, self.at, text)

    def colon(self, start: int, text: str) -> None:
        if self.holes and self.depth == 0 and text in (":", ":>"):
            close = self.text.find("}", start)
            if close > 0 and "\n" not in self.text[start:close]:
                self.at = close + 1
                self.after_hole(start, self.text[start + 1 : close])
                return
        self.put(self.words[text], start, self.at, text)

    def symbol(self, start: int, text: str) -> None:
        if kind := self.words.get(text):
            self.put(kind, start, self.at, text)
        elif text[0] == "." and self.text[self.at - 1] == ".":
            ways = ("slices:  xs[0:3]  xs[:, 0]", "numbers below 10:  range 10", "a changed copy:  { r with x = 1 }")
            self.problem("E0105", f"`{text}` is no operator", start, self.at, *ways)
        else:
            self.put("PREFIX" if _PREFIXES.fullmatch(text) else "INFIX", start, self.at, text)

    def variable(self, start: int, text: str) -> None:
        self.put("TYVAR", start, self.at, text[1:])

    def stray_character(self) -> None:
        start, char = self.at, self.text[self.at]
        self.at += 1
        shown = f"`{char}`" if char.isprintable() and char != "`" else f"U+{ord(char):04X}"
        help_ = (CHARACTERS[char],) if char in CHARACTERS else ()
        if self.holes and self.text.startswith('\\"', start):
            help_ = ('between { and } a text is written without it:  {String.join ", " names}',)
        self.problem("E0105", f"the character {shown} has no meaning here", start, self.at, *help_)

    # ---- comments ----------------------------------------------------------------------------------------------

    def line(self, start: int, text: str) -> None:
        self.comments.append(Comment(Span(self.source, start, self.at), text.rstrip()))

    def block(self, start: int, _: str) -> None:
        openers = [start]
        while openers:
            found = _COMMENT_PART.search(self.text, self.at)
            if found is None:
                operator = self.text.startswith("(*)", openers[-1])
                help_ = "the operator is written with spaces:  ( * )" if operator else "end it with *)"
                self.problem("E0102", "this comment is never closed", openers[-1], openers[-1] + 2, help_)
                self.at = len(self.text)
                return
            self.at = found.end()
            match found.group():
                case "(*":
                    openers.append(found.start())
                case "*)":
                    openers.pop()
                case _:
                    self.skip_string(found.start())
        self.comments.append(Comment(Span(self.source, start, self.at), self.text[start : self.at]))

    def skip_string(self, start: int) -> None:
        """Skips a string inside a comment; a lone quote is not a string there."""
        found = re.compile(r'"(?:[^"\\\n]|\\.)*"').match(self.text, start)
        self.at = found.end() if found else start + 1

    # ---- strings -----------------------------------------------------------------------------------------------

    def string(self, start: int, _: str) -> None:
        parts: list[str] = []
        while True:
            parts.append(self.plain(_STRING_PART))
            match self.text[self.at : self.at + 1]:
                case '"':
                    self.at += 1
                    self.put("STRING", start, self.at, "".join(parts))
                    return
                case "\\":
                    parts.append(self.escape())
                case _:
                    self.unclosed_string(start)
                    return

    def plain(self, part: re.Pattern[str]) -> str:
        """The characters from here on that stand for themselves; may be empty."""
        found = part.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return found.group()

    def interp(self, start: int, _: str) -> None:
        self.interp_text(start, None)

    def after_hole(self, start: int, form: str) -> None:
        self.depth, _ = self.holes.pop()
        self.interp_text(start, form)

    def interp_text(self, start: int, form: str | None) -> None:
        """Reads up to the next interpolation or the end; `form` is the format of the interpolation before, if any."""
        first = form is None
        parts: list[str] = []
        while True:
            parts.append(self.plain(_INTERP_PART))
            char = self.text[self.at : self.at + 1]
            if char == "\\":
                parts.append(self.escape())
            elif char and char in "{}" and self.text[self.at + 1 : self.at + 2] == char:
                parts.append(char)
                self.at += 2
            elif char == "}":
                parts.append(char)
                self.at += 1
            elif char == "{":
                self.holes.append((self.depth, self.at))
                self.depth = 0
                self.at += 1
                self.put("INTERP_OPEN" if first else "INTERP_MIDDLE", start, self.at, (form or "", "".join(parts)))
                return
            elif char == '"':
                self.at += 1
                self.put("INTERP" if first else "INTERP_CLOSE", start, self.at, (form or "", "".join(parts)))
                return
            else:
                self.unclosed_string(start)
                return

    def escape(self) -> str:
        start = self.at
        found = _ESCAPE.match(self.text, start)
        if found is None:
            self.at += 1
            return ""
        self.at = found.end()
        code: str | None = found.group(1)
        char: str | None = found.group(2)
        if code and int(code, 16) <= 0x10FFFF and not 0xD800 <= int(code, 16) <= 0xDFFF:
            return chr(int(code, 16))
        if char is None and code is None:
            return ""  # an escaped line break
        if char is None or char not in _ESCAPES:
            known = r"the escapes are \n \t \r \" \\ \u{1F600}"
            self.problem("E0105", f"`{found.group()}` is no escape", start, self.at, known)
            return ""
        return _ESCAPES[char]

    def unclosed_string(self, start: int) -> None:
        self.at = len(self.text)
        if self.holes:
            start = self.holes[-1][1]
            title = "this `{` of an interpolated string is never closed"
            self.problem("E0102", title, start, start + 1, "a brace itself is written {{")
            self.holes.clear()
            return
        width = 2 if self.text[start] == "$" else 1
        self.problem("E0102", "this string is never closed", start, start + width, 'end it with "')
