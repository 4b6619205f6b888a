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
        ("let x = 1;;\nlet y = 2", "E0106", ";", "between declarations"),
        ("let a = f 1,5", "E0101", ",", "1.5"),
        ("let a = {x = 1, y = 2}", "E0101", ",", "semicolons"),
        ("let a = [1, 2; 3]", "E0101", ";", "list"),
        ("let a = [|1; 2|]", "E0106", "|", "bars"),
        ("let a = xs.(1)", "E0106", "(", "xs[i]"),
        ("let a = p.0", "E0106", "0", "tuple"),
        ("let a = f .5", "E0106", ".", "0.5"),
        ("let a = (.5)", "E0106", ".", "0.5"),
        ("let a = if a | b then 1 else 2", "E0106", "|", "a || b"),
        ("print 1", "E0101", "print", "do print 1"),
        ("let x = 1 in print x", "E0101", "in", "no `in`"),
        ("let f x = for i < 10 do x", "E0106", "for", "loop s"),
        ("type Foo = int", "E0101", "Foo", "small letter"),
        ("type t = leaf of int", "E0101", "leaf", "capital"),
        ("import nn", "E0101", "nn", "capital"),
        ("let x =-1", "E0106", "=-", "space"),
        ("let x = y : int", "E0101", ":", "(e : t)"),
        ("let x = a < b < c", "E0106", "<", "a < b && b < c"),
        ("let x = 3;\nlet y = 4", "E0106", ";", "leave it out"),
        ("open List;\nlet x = 1", "E0106", ";", "leave it out"),
        ("type t = A | B;\nlet x = A", "E0106", ";", "leave it out"),
        ("let f c = if c { 1 } else { 2 }", "E0106", "{", "if c then a else b"),
        ("let f c = if c then { 1 } else { 2 }", "E0106", "{", "parentheses"),
        ("let f = fun x { x + 1 }", "E0106", "{", "fun x -> e"),
        ("let f(x) = { let y = x; y }", "E0106", "{", "(a; b)"),
        ("let f x = match x { 1 => 2, _ => 3 }", "E0106", "{", "| p -> e"),
        ("let f n = loop s = 0 for i < n { s + i }", "E0106", "{", "do e"),
        ("let f n = loop s = 0 while s < n { s + 1 }", "E0106", "{", "while c do e"),
        ('let x = { "a": 2 }', "E0106", '"a"', "fields have names"),
        ("let f = x -> x + 1", "E0106", "->", "fun x -> e"),
        ("let f = (x, y) -> x + y", "E0106", "->", "fun x -> e"),
        ("let f = List.map (x -> x) [1]", "E0106", "->", "fun x -> e"),
        ("let f = |x| x", "E0106", "|", "fun x -> e"),
        ("let f xs = [for x <- xs -> x]", "E0106", "<-", "for x in xs"),
        ("let f = fun x: int -> x", "E0106", ":", "fun (x : int) -> e"),
        ("let f i = i++", "E0106", "++", "i + 1"),
        ("let f i = i++; i", "E0106", "++", "!r + 1"),
        ("let f a b c = a ? b : c", "E0106", "?", "if c then a else b"),
        ("let f x = &x", "E0106", "&", "ref e"),
        ("let f xs = xs[::2]", "E0106", "::", "xs[2 * i]"),
        ("let f xs = xs[..2]", "E0105", "..", "xs[0:3]"),
        ("let f x = 1 if x else 2", "E0106", "if", "if c then a else b"),
        ("let f x y = if x in y then 1 else 2", "E0106", "in", "any"),
        ("let f x = x as float", "E0106", "as", "float x"),
        ("let f n = loop s = 0 for i = 0 to n do s", "E0106", "=", "for i < n"),
        ("let f n = loop s = 0 for i in n do s", "E0106", "in", "for i < n"),
        ("let f (int x) = x", "E0106", "int x", "(x : int)"),
        ("int x = 3", "E0106", "int", "let x : int = e"),
        ("from list import map", "E0106", "from", "open List"),
        ("enum t { A }", "E0106", "enum", "A | B"),
        ("try\n  print 1\nwith e -> 2", "E0106", "try", "Control.attempt"),
        ('raise "x"', "E0106", "raise", "error"),
        ("let f x = do\n  print x", "E0106", "do", "(a; b)"),
        ("let x = (1,)", "E0106", ")", "at least two"),
        ("let x = [i * 2 | i <- xs]", "E0106", "|", "[for x in xs -> e]"),
        ("let f x = while x > 0 do x", "E0106", "while", "loop s = 1 while"),
        ("/* c */\nlet x = 1", "E0106", "/*", "(* ... *)"),
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
