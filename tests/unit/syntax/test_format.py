"""The formatter: what it writes reads back as the same tree, with every comment, and formats to itself."""

import random

import pytest
from conftest import ROOT, one_in
from dpl.source import Source
from dpl.syntax.formatter.format import format_source, show
from dpl.syntax.lexer import Lexer
from dpl.syntax.parse import parse
from dpl.syntax.tables import tables
from hypothesis import HealthCheck, given, settings
from trees import FILE, bare

WRONG = ("syntax_errors", "syntax_inside")  # folders of programs that cannot be parsed
OWN = sorted(p for folder in ("stdlib", "examples") for p in (ROOT / folder).rglob("*.dp"))
FILES = [*OWN, *one_in(4, sorted(p for p in (ROOT / "tests").rglob("*.dp") if p.parent.name not in WRONG))]


def fmt(text: str) -> str:
    return format_source(Source("t.dp", text))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(FILE)
def test_a_tree_reads_back(file):
    text = show(file)
    assert bare(parse(Source("t.dp", text))) == bare(file)
    assert fmt(text) == text


def check_text(text: str) -> str:
    """What the formatter makes of a program, which means the same.  That is known where the text stays as it was."""
    out = fmt(text)
    if out == text:
        return out
    before, after = parse(Source("a.dp", text)), parse(Source("b.dp", out))
    assert bare(before) == bare(after)
    assert sorted(c.text for c in before.comments) == sorted(c.text for c in after.comments)
    assert fmt(out) == out
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_programs_of_the_project(path):
    out = check_text(path.read_text())
    assert out == out.rstrip("\n") + "\n" and not any(line != line.rstrip() for line in out.split("\n"))
    assert out == path.read_text() or path.parent.name not in ("stdlib", "examples")


def test_comments_anywhere_are_kept():
    """Comments thrown between the tokens of a program, of both kinds, with and without a line of their own."""
    program = (ROOT / "stdlib/optim.dp").read_text() + SAMPLE
    chance = random.Random(1)
    for density in (0.01, 0.1, 0.3):
        lexer = Lexer(Source("a.dp", program), tables()).read()
        text, end = "", 0
        for number, token in enumerate(lexer.tokens):
            text += program[end : token.start]
            if chance.random() < density and token.kind not in ("INDEX", "INTERP_MIDDLE", "INTERP_CLOSE", "RBRACE"):
                text += chance.choice(
                    [f" -- c{number}\n", f"\n-- c{number}\n", f" (* c{number} *) ", f"\n  (* c\n {number} *)\n"]
                )
            text += program[token.start : token.end]
            end = token.end
        check_text(text + program[end:])


SAMPLE = """
type t = A of int | B and 'a u = { x : 'a; y : float[2, 3] }
let f x = match x with | A n when n > 1 -> [1; 2] | A _ -> [] | B -> let y = 1 in y; [y;]
let g = loop (a, b) = (1, 2) for i < 3 do if a < b then (b, a) else (a, b + i)
do print [for i < 3, x in [1, 2] -> { v with [i] = x * -f.y ** 2 }]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("-- only\n\n\n(* comments *)", "-- only\n\n(* comments *)\n"),
        ("let f x=if x>0 then x else(-x)", "let f x = if x > 0 then x else -x\n"),
        ("let a=1\n\n\n\nlet b=2\nlet c=3", "let a = 1\n\nlet b = 2\nlet c = 3\n"),
        ("let x = (((1 + 2))) * (3)", "let x = (1 + 2) * 3\n"),
        ("do begin f x; g y end", "do f x; g y\n"),
        ("let f = fun x -> x -- why\nlet g = 1", "let f = fun x -> x  -- why\nlet g = 1\n"),
        ("type t = A -- a\n | B", "type t =\n  | A  -- a\n  | B\n"),
        ("let x = - (- 1)", "let x = -(-1)\n"),
        ('do print $"{ x:.2f }  {{"', 'do print $"{ x:.2f }  {{"\n'),
        ("let x = f(a)[1]", "let x = f a[1]\n"),
        ("let v : int (* c *) = 3", "let v : int (* c *) = 3\n"),
        ("let v : int = (* c *) 3", "let v : int = (* c *) 3\n"),
        ("let f (* a *) x (* b *) = x", "let f x (* a *) (* b *) = x\n"),
        ("let v : int -- c\n = 3", "let v : int -- c\n  =\n  3\n"),
        ("let rec f x = x and g x (* g *) = x", "let rec f x = x\nand g x (* g *) = x\n"),
        ("type t (* c *) = A | B", "type t (* c *) = A | B\n"),
        ("type t (* c *) = { x : int }", "type t (* c *) = { x : int }\n"),
        ("type t = { (* d *) x : int }", "type t = { (* d *) x : int }\n"),
        ('expect "a" (* c *) = true', 'expect "a" (* c *) = true\n'),
        ("let a = loop s (* c *) = 0 for i < 3 do s", "let a = loop s (* c *) = 0 for i < 3 do s\n"),
        ("let r = { x = (* c *) 1; y (* d *) = 2 }", "let r = { x = (* c *) 1; (* d *) y = 2 }\n"),
        ("let r = { s with x = -- c\n 1 }", "let r = { s with x =\n                   -- c\n                   1 }\n"),
        ("let b = i = (* c *) 0", "let b = i = (* c *) 0\n"),
        ("let b = i (* c *) = 0", "let b = i (* c *) = 0\n"),
        ("let x = a + -- why\n b * c", "let x =\n  a  -- why\n    + b * c\n"),
        ("let x = f a -- one\n b", "let x =\n  f\n    a  -- one\n    b\n"),
        ("let x = f ((* c *) g a b)", "let x = f ((* c *) g a b)\n"),
        ('let s = $"{f (* c *) x}"', 'let s = $"{f (* c *) x}"\n'),
        ("let p = { a = 1; b = 2 -- both\n }", "let p = { a = 1; b = 2 }  -- both\n"),
        ("let p = { a = 1; -- one\n b = 2 }", "let p = { a = 1;  -- one\n          b = 2 }\n"),
        ("let a = loop s = 0 while let t = s in t < 3 do t", "let a = loop s = 0 while (let t = s in t < 3) do t\n"),
        (
            "let a = if ( -- c\n f x; b) then 1 else 2",
            "let a =\n  if (-- c\n      f x;\n      b) then\n    1\n  else 2\n",
        ),
        ("let n = f { x = 1 } (fun x ->\n x)", "let n = f { x = 1 } (fun x ->\n  x)\n"),
    ],
)
def test_small(text, expected):
    assert fmt(text) == expected


def test_long_lines_are_broken():
    call = "combine (first_function argument_one argument_two) (second_function argument_three)"
    out = fmt(f"let result = {call} (third_function argument_four)")
    assert out == (
        "let result =\n"
        "  combine\n"
        "    (first_function argument_one argument_two)\n"
        "    (second_function argument_three)\n"
        "    (third_function argument_four)\n"
    )


def test_a_record_that_fits_below_stays_in_one_line():
    record = "{ weights = [0.1, -0.2, 0.3, 0.4]; biases = [0.1, 0.3, 0.3]; scale = [1.0] }"
    assert fmt(f"let a_name_of_some_length = {record}") == f"let a_name_of_some_length =\n  {record}\n"
    assert fmt(f"let name = {record}") == f"let name = {record}\n"


def equals_before(text: str) -> list[tuple[str, int]]:
    """Each comment, with how many `=` come before it."""
    lexer = Lexer(Source("a.dp", text), tables()).read()
    signs = [t.start for t in lexer.tokens if t.value == "="]
    comments = parse(Source("a.dp", text)).comments
    return [(c.text, sum(sign < c.span.start for sign in signs)) for c in comments]


def test_no_comment_crosses_an_equals_sign():
    """Comments in the line, thrown anywhere into declarations."""
    program = SAMPLE + DECLARATIONS
    chance = random.Random(2)
    for _ in range(5):
        lexer = Lexer(Source("a.dp", program), tables()).read()
        text, end = "", 0
        for number, token in enumerate(lexer.tokens):
            text += program[end : token.start]
            if chance.random() < 0.2 and token.kind not in ("INDEX", "INTERP_MIDDLE", "INTERP_CLOSE", "RBRACE"):
                text += f"(* c{number} *) "
            text += program[token.start : token.end]
            end = token.end
        text += program[end:]
        crossed = set(equals_before(text)) ^ set(equals_before(check_text(text)))
        assert not crossed


DECLARATIONS = """
let start = { x = 1.0; y = [2.0, 3.0] }
let rec even (n : int) : bool = n = 0 || odd (n - 1)
and odd n = if n = 0 then false else even (n - 1)
let (a, b) = (1, f { start with x = 3.0; y = [1.0, 2.0] })
let total : float = let s : float = 0.0 in loop s = s for i < 3 do s + a * 2.0
expect "sums" = total = 3.0
type t = { one : int; two : float }
"""
