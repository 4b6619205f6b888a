"""Syntax errors: each says what is wrong, where, and what to write."""

import pytest
from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax.parse import parse, parse_expr


def errors(text: str):
    with pytest.raises(DplError) as caught:
        parse(Source("t.dp", text))
    return caught.value.diagnostics


@pytest.mark.parametrize(
    ("text", "code", "at", "words"),
    [
        ("let f x =\n  let y = 1\n  y + 1\nlet g = 2", "E0108", "let", "no `in`"),
        ("let f = fun x => x", "E0106", "=>", "expected `->`"),
        ("let f x -> x", "E0106", "->", "expected `=`"),
        ("let x : int := 3", "E0106", ":=", "expected `=`"),
        ("do print (1 == 2)", "E0106", "==", "no operator"),
        ("do print (1 != 2)", "E0106", "!=", "a <> b"),
        ("do r <- 2", "E0106", "<-", "r := e"),
        ("do print (a +. b)", "E0106", "+.", "floats"),
        ("let x = (1 + 2\nlet y = 3", "E0102", "(", "never closed"),
        ("let x = [1, 2\n", "E0102", "[", "never closed"),
        ("let x = (1]", "E0103", "]", "expected `)`"),
        ("let x = 1)", "E0103", ")", "closes nothing"),
        ("let x = begin 1\nlet y = 2", "E0102", "begin", "never closed"),
        ('let s = "abc\nlet t = 2', "E0102", '"', "never closed"),
        ("let x = 1 (* (* *)", "E0102", "(*", "never closed"),
        ('let x = $"{a b"', "E0102", "{", "never closed"),
        ("let end = 4", "E0109", "end", "keyword"),
        ("let f r = r.type", "E0109", "type", "keyword"),
        ("let f x = if x then 1 elif y then 2 else 3", "E0106", "elif", "else if"),
        ("let f x = if x 1 else 2", "E0101", "", "expected `then`"),
        ("let f x = if x then a; b else c", "E0101", "else", "no `if`"),
        ("let f = function | A -> 1", "E0106", "function", "by cases"),
        ("def f(x): return x", "E0106", "def", "let f x = e"),
        ("let x = 1;;\nlet y = 2", "E0106", ";", "no separator"),
        ("let a = f 1,5", "E0101", ",", "1.5"),
        ("let a = {x = 1, y = 2}", "E0101", ",", "semicolons"),
        ("let a = [1, 2; 3]", "E0101", ";", "list"),
        ("let a = [|1; 2|]", "E0106", "|", "bars"),
        ("let a = xs.(1)", "E0106", "(", "xs[i]"),
        ("let a = p.0", "E0106", "0", "tuple"),
        ("let a = f .5", "E0106", ".", "0.5"),
        ("let a = (.5)", "E0106", ".", "0.5"),
        ("let a = if a | b then 1 else 2", "E0106", "|", "a || b"),
        ("print 1", "E0101", "print", "do print x"),
        ("let x = 1 in print x", "E0101", "in", "no `in`"),
        ("let f x = for i < 10 do x", "E0106", "for", "loop s"),
        ("type Foo = int", "E0101", "Foo", "small letter"),
        ("type t = leaf of int", "E0101", "leaf", "capital"),
        ("import nn", "E0101", "nn", "capital"),
        ("let x =-1", "E0106", "=-", "space"),
        ("let x = y : int", "E0101", ":", "(e : t)"),
        ("let x = a < b < c", "E0106", "<", "a < b && b < c"),
        ("let f x = x +", "E0101", "", "an expression"),
        ("let f x = match x with", "E0101", "", "a pattern"),
        ("let f (x : ) = 3", "E0101", ")", "a type"),
        ("let x = loop s = 0 for i < n s + 1", "E0101", "", "expected `do`"),
        ("let x = “a”", "E0105", "“", "straight"),
        ("let x = λ", "", "", ""),
        ("let f x = \\x -> 3", "E0105", "\\", "fun x -> e"),
        (r'let x = "\q"', "E0105", r"\q", "escape"),
    ],
)
def test_usual_mistakes(text, code, at, words):
    if not code:  # a letter like any other
        parse(Source("t.dp", text))
        return
    (found,) = errors(text)
    assert (found.code, found.span.text) == (code, at)
    assert words in " ".join([found.title, found.note, *found.helps, *(label.text for label in found.labels)])


def test_several_errors_in_one_run():
    text = "let a = (1\nlet b = 2 +\nlet c = 3\nlet d = fun x => x\nlet e = 1 ) + \nlet f = 'x'"
    assert [d.span.line for d in errors(text)] == [1, 2, 4, 5, 6]


def test_every_prefix_of_a_program_is_answered():
    text = 'type t = A of int | B\nlet f (x : float[n, 2]) = match [for i < n -> $"a{x[i]:.2f}"] with '
    text += "| [a; _] -> { a with [0] = -1 } | _ -> f\\n"
    for end in range(len(text)):
        try:
            parse(Source("t.dp", text[:end]))
        except DplError as error:
            for diagnostic in error.diagnostics:
                assert "__ANON" not in diagnostic.title and "something else" not in diagnostic.title, text[:end]


def test_any_token_missing_or_doubled():
    words = [
        "let",
        "f",
        "x",
        "=",
        "if",
        "a",
        "<",
        "1",
        "then",
        "(",
        "b",
        ",",
        "[",
        "c",
        ";",
        "d",
        "]",
        ")",
        "else",
        "{",
        "e",
        "with",
        "g",
        "=",
        "2",
        "}",
        "in",
    ][:-1]
    for i in range(len(words)):
        for changed in (words[:i] + words[i + 1 :], words[:i] + [words[i]] * 2 + words[i + 1 :]):
            try:
                parse(Source("t.dp", " ".join(changed)))
            except DplError as error:
                assert all(d.code.startswith("E01") for d in error.diagnostics)


def test_empty_expression():
    with pytest.raises(DplError):
        parse_expr(Source("t.dp", "  "))
