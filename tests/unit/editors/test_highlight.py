"""The Pygments lexer says of every token what DPL's own lexer says, and reads anything at all."""

import re
import tomllib
from importlib.metadata import entry_points

import pytest
from conftest import ROOT
from dpl.highlight import DplLexer
from dpl.source import Source
from dpl.syntax.lexer import Lexer
from dpl.syntax.tables import tables
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

FOLDERS = ("examples", "stdlib", "tests/agree", "tests/unit/editors")
PROGRAMS = sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.dp"))
WORDS = sorted(word for word in tables().words if re.fullmatch(r"\w+", word))
FAMILIES = {
    "LOWER": (Name, Keyword.Type),
    "QLOWER": (Name.Namespace,),
    "UPPER": (Name.Class, Name.Namespace),
    "QUPPER": (Name.Namespace,),
    "TYVAR": (Name.Entity,),
    "INT": (Number,),
    "FLOAT": (Number.Float,),
    "STRING": (String.Double,),
    "INTERP": (String.Double,),
    "INTERP_OPEN": (String.Double,),
    "INTERP_MIDDLE": (String.Interpol,),
    "INTERP_CLOSE": (String.Interpol,),
}


def read(text: str) -> dict[int, tuple]:
    """Kind and text of what begins at each offset."""
    return {at: (kind, value) for at, kind, value in DplLexer().get_tokens_unprocessed(text)}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_says_what_the_language_says(path) -> None:
    text = path.read_text(encoding="utf-8")
    lexer = Lexer(Source(path.name, text), tables()).read()
    found = read(text)
    assert "".join(value for _, value in found.values()) == text
    if lexer.problems:  # nobody says what these are
        return
    assert all(kind is not Error for kind, _ in found.values())
    for token in lexer.tokens[:-1]:
        kind, value = found[token.start]
        if token.kind == tables().words.get(str(token.value)) and token.value in WORDS:
            families = (Operator.Word,) if token.value == "not" else (Name.Builtin.Pseudo, Keyword)
            assert value == token.value
        else:
            families = FAMILIES.get(token.kind, (Punctuation, Operator))
        assert any(kind in family for family in families), f"{text[token.start : token.end]!r} is {kind}"
    for comment in lexer.comments:
        kind, _ = found[comment.span.start]
        assert kind in Comment or kind is String.Doc


@pytest.mark.parametrize("word", WORDS)
def test_every_keyword_of_the_grammar(word: str) -> None:
    kind, value = read(f"{word} x")[0]
    assert value == word
    assert kind in Keyword or kind in (Operator.Word, Name.Builtin.Pseudo)
    assert read(f"{word}' x")[0] == (Name, f"{word}'")


@pytest.mark.parametrize(
    ("text", "where", "kind"),
    [
        ("(* a (* b *) c *) x", "c", Comment.Multiline),
        ('(* "*)" *) x', "x", Name),
        ('(* a lone " *) x', "x", Name),
        ("-- | what it does\nlet", "-- |", String.Doc),
        ('$"{a:.2f} b"', "b", String.Double),
        ('$"{(a : float)} b"', "float", Keyword.Type),
        ('$"{f {x = 1}:>8} b"', ":>8}", String.Interpol),
        ('$"{$"{a}"} b"', "b", String.Double),
        ('$"{{a}}"', "a", String.Double),
        ('"\\u{1F600}"', "\\u", String.Escape),
        ('"\\q"', "\\", String.Double),
        ("let rec go x = 1", "go", Name.Function),
        ("let go = 1", "go", Name),
        ("let rec = 1", "rec", Keyword.Declaration),
        ("Nn.relu x", "relu", Name.Attribute),
        ("grad f", "grad", Name.Builtin),
        ("1_000i32", "1", Number.Integer),
        ("2.5e-3f32", "2", Number.Float),
        ("0xffu8", "0", Number.Hex),
        ("a # b", "#", Error),
        ("a <+>--b", "<+>", Operator),
        ("α1 + θ'", "θ", Name),
        ("ß + Θ", "Θ", Name.Class),
    ],
)
def test_fine_points(text: str, where: str, kind) -> None:
    found = read(text)
    assert "".join(value for _, value in found.values()) == text
    inside = [(at, k) for at, (k, value) in found.items() if at <= text.rindex(where) < at + len(value)]
    assert inside[0][1] is kind


PIECES = ['"', '$"', "{", "}", "(*", "*)", "--", ":", "let f ", "'a", "1.", "\n"]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map("".join))
def test_reads_anything(text: str) -> None:
    found = list(DplLexer().get_tokens_unprocessed(text))
    assert "".join(value for _, _, value in found) == text


def test_is_registered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pygments.lexers"] == {"dpl": "dpl.highlight:DplLexer"}
    assert any(need.startswith("Pygments") for need in project["dependencies"])
    for registered in entry_points(group="pygments.lexers", name="dpl"):  # where the project is installed
        assert registered.load() is DplLexer
        assert type(get_lexer_by_name("dpl")) is type(get_lexer_for_filename("model.dp")) is DplLexer


def test_whitespace_is_kept() -> None:
    text = "\n\n  let x = 1  \n\n"
    assert "".join(v for _, v in DplLexer(stripnl=False, ensurenl=False).get_tokens(text)) == text
    assert read(text)[0] == (Whitespace, "\n\n  ")
