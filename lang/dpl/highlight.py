"""text -> coloured text: the Pygments lexer `dpl`, for the REPL, documentation and web pages.

    pygmentize -l dpl model.dp

It uses neither the grammar nor the parser, so it accepts any text, also incomplete programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, include
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Whitespace, _TokenType

DECLARING = ("let", "rec", "and", "type", "of", "import", "as", "open", "extern", "export", "do", "expect")
CONTROLLING = (
    "begin", "else", "end", "for", "fun", "if", "in", "loop", "match", "reset", "shift", "then", "when", "while",
    "with",
)  # fmt: skip
CONSTANTS = ("true", "false")
SCALARS = (
    "bool", "int", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "float", "f16", "f32", "f64", "string", "unit",
)  # fmt: skip
DERIVATIVES = (
    "grad", "value_and_grad", "vjp", "jvp", "diff", "stop_grad", "checkpoint", "checkpoint_loop", "with_vjp",
    "with_jvp",
)  # fmt: skip

KINDS: dict[str, _TokenType] = {
    **dict.fromkeys(DECLARING, Keyword.Declaration),
    **dict.fromkeys(CONTROLLING, Keyword),
    **dict.fromkeys(CONSTANTS, Keyword.Constant),
    **dict.fromkeys(SCALARS, Keyword.Type),
    **dict.fromkeys(DERIVATIVES, Name.Builtin),
    "not": Operator.Word,
    "_": Name.Builtin.Pseudo,
}

_BLANK = r"[ \t\r\n\f\ufeff]"
_WORD = r"[^\W\d][\w']*"
_KEYWORD = rf"(?:{'|'.join((*DECLARING, *CONTROLLING, *CONSTANTS, 'not', '_'))})(?![\w'])"
_ESCAPE = r'\\(?:u\{[0-9a-fA-F]{1,6}\}|\n[ \t]*|[ntr0"\'\\{}])'
_SUFFIX = r"(?:[iuf]\d+)?"


def _word(_: RegexLexer, match: re.Match[str]) -> Iterator[tuple[int, _TokenType, str]]:
    """Classify a word.  A keyword is highlighted everywhere, except in a qualified name or as the field of a record."""
    text, word, end = match.string, match.group(), match.end()
    after_dot = text[match.start() - 1 : match.start()] == "."
    if word[0].isupper():
        kind = Name.Namespace if re.compile(rf"\.{_WORD}").match(text, end) else Name.Class
    elif after_dot:
        kind = Name.Attribute
    else:
        kind = KINDS.get(word, Name)
    yield match.start(), kind, word


class DplLexer(RegexLexer):
    """The tokens of section 2 of the language reference; comments nest, and strings contain expressions."""

    name = "DPL"
    aliases: ClassVar = ["dpl"]
    filenames: ClassVar = ["*.dp"]
    mimetypes: ClassVar = ["text/x-dpl"]
    flags = re.DOTALL

    tokens: ClassVar = {
        "root": [
            include("blank"),
            (
                rf"(let|and)({_BLANK}+)(?:(rec)({_BLANK}+))?(?!{_KEYWORD})({_WORD})(?![\w'])(?={_BLANK}+[\w(\[{{\"])",
                bygroups(Keyword.Declaration, Whitespace, Keyword.Declaration, Whitespace, Name.Function),
            ),
            (_WORD, _word),
            (rf"\d[\d_]*(?:\.[\d_]*(?:[eE][+-]?\d[\d_]*)?|[eE][+-]?\d[\d_]*){_SUFFIX}", Number.Float),
            (rf"0[xX][0-9a-fA-F_]+{_SUFFIX}", Number.Hex),
            (rf"0[bB][01_]+{_SUFFIX}", Number.Bin),
            (rf"0[oO][0-7_]+{_SUFFIX}", Number.Oct),
            (r"\d[\d_]*f\d+", Number.Float),
            (rf"\d[\d_]*{_SUFFIX}", Number.Integer),
            (r'\$"', String.Double, "interpolated"),
            (r'"', String.Double, "string"),
            (r"'[^\W\d]\w*", Name.Entity),
            (r":[:=>]?", Operator),
            (r"(?:(?!--|\$\")[!$%&*+\-./<=>?@^|~])+", Operator),
            (r"[(\[{]", Punctuation, "bracket"),
            (r"[)\]},;]", Punctuation),
            (r".", Error),
        ],
        "bracket": [(r"[)\]}]", Punctuation, "#pop"), include("root")],
        "blank": [
            (rf"{_BLANK}+", Whitespace),
            (r"-- \|[^\n]*", String.Doc),
            (r"--[^\n]*", Comment.Single),
            (r"\(\*", Comment.Multiline, "comment"),
        ],
        "comment": [
            (r"\(\*", Comment.Multiline, "#push"),
            (r"\*\)", Comment.Multiline, "#pop"),
            (r'"(?:[^"\\\n]|\\.)*"', Comment.Multiline),
            (r'[^(*"]+|[(*"]', Comment.Multiline),
        ],
        "string": [
            (r'"', String.Double, "#pop"),
            (_ESCAPE, String.Escape),
            (r'[^"\\]+|\\', String.Double),
        ],
        "interpolated": [
            (r'"', String.Double, "#pop"),
            (r"\{\{|\}\}", String.Escape),
            (r"\{", String.Interpol, "hole"),
            (_ESCAPE, String.Escape),
            (r'[^"\\{}]+|[\\}]', String.Double),
        ],
        "hole": [
            (r"\}", String.Interpol, "#pop"),
            (r":(?![:=])[^}\n]*\}", String.Interpol, "#pop"),
            include("root"),
        ],
    }
