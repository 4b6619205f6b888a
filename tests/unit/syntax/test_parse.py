"""The parser: what texts mean."""

import time

import pytest
from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax import tables, tree
from dpl.syntax.formatter.show import show_expr
from dpl.syntax.parse import parse, parse_expr, parse_type
from trees import bare


def expr(text: str) -> tree.Expr:
    return parse_expr(Source("t.dp", text))


def lets(text: str) -> list[tree.Binding]:
    return [b for d in parse(Source("t.dp", text)).decls for b in d.bindings]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("f -1", "(f) - (1)"),
        ("f (-1)", "(f) (-1)"),
        ("-x ** 2", "-((x) ** (2))"),
        ("-1 ** 2", "-((1) ** (2))"),
        ("2 ** -x", "(2) ** (-x)"),
        ("2 ** 3 ** 4", "(2) ** ((3) ** (4))"),
        ("a - b - c", "((a) - (b)) - (c)"),
        ("a + b * c @ d", "(a) + (((b) * (c)) @ (d))"),
        ("a ++ b ++ c", "(a) ++ ((b) ++ (c))"),
        ("1 :: 2 :: []", "(1) :: ((2) :: ([]))"),
        ("a || b && c = d", "(a) || ((b) && ((c) = (d)))"),
        ("not a && b", "(not a) && (b)"),
        ("not f x = y", "(not (f x)) = (y)"),
        ("map not xs", "((map) (not)) (xs)"),
        ("r := x |> f", "((r) := (x)) |> (f)"),
        ("!r.f", "(!r).f"),
        ("!r[0]", "(!r)[0]"),
        ("f !r x", "((f) (!r)) (x)"),
        ("reset e x", "(reset e) (x)"),
        ("f xs[1]", "(f) (xs[1])"),
        ("f [1]", "(f) ([1])"),
        ("f x.y.z[1][2]", "(f) ((((x.y).z)[1])[2])"),
        ("a <+> b *+ c", "(a) <+> ((b) *+ (c))"),
        ("a **. b ** c", "(a) **. ((b) ** (c))"),
        ("x |> fun y -> y |> g", "(x) |> (fun y -> ((y) |> (g)))"),
        ("if a then b else c; d", "(if a then b else c); (d)"),
        ("if a then if b then c else d", "if a then (if b then c else d)"),
        ("let x = a in b; c", "let x = a in (b; c)"),
        ("fun x -> a; b", "fun x -> (a; b)"),
        ("shift k -> a; b", "shift k -> (a; b)"),
        ("if a then let x = b in c; d else e", "if a then (let x = b in (c; d)) else e"),
        ("loop s = a for i < n do b; c", "(loop s = a for i < n do b); c"),
        ("match x with A -> a; b | B -> c", "match x with | A -> (a; b) | B -> c"),
        ("match x with | A -> match y with | B -> b | C -> c", "match x with | A -> (match y with | B -> b | C -> c)"),
        ("begin a; b end", "(a; b)"),
        ("a; b;", "a; b"),
        ("[1; 2;]", "[1; 2]"),
        ("(1, 2,)", "(1, 2)"),
        ("{ x; y = 1; }", "{ x = x; y = 1 }"),
        ("( + ) 1", "(( + )) (1)"),
        ("0xff + 1_000 + 0b11", "(255 + 1000) + 3"),
        ("a -- b\n - c", "a - c"),
        ('(* "*)" (* x *) *) a', "a"),
    ],
)
def test_meaning(text, meant):
    assert bare(expr(text)) == bare(expr(meant))
    assert bare(expr(show_expr(expr(text)))) == bare(expr(text))


def test_numbers():
    items = expr("[-9223372036854775808, 1., 1e3, 2.5e-3f32, 255u8, 1i32, 18446744073709551615, - 128i8]").items
    assert [i.value for i in items] == [-(2**63), 1.0, 1000.0, 0.0025, 255, 1, 2**64 - 1, -128]
    assert [i.suffix for i in items] == ["", "", "", "f32", "u8", "i32", "", "i8"]
    assert [type(i.value) for i in items][:3] == [int, float, float]


@pytest.mark.parametrize(
    "text",
    [
        "128i8",
        "- x + 128i8",
        "256u8",
        "-1u8",
        "18446744073709551616",
        "-9223372036854775809",
        "1.0i32",
        "1i7",
        "0x",
        "1x",
    ],
)
def test_numbers_out_of_range(text):
    with pytest.raises(DplError) as caught:
        expr(text)
    assert caught.value.diagnostics[0].code in ("E0104", "E0105")


def test_strings():
    assert expr(r'"a\n\t\"\\\u{1F600}é"').value == 'a\n\t"\\\U0001f600é'
    assert expr('"a\nb"').value == "a\nb"


def test_interpolation():
    node = expr(r'$"a{x:.4f}{{b}}{f {y = [1, 2][0]} $"in{z}"}\n"')
    (text, (x, form), braces, (call, none), end) = node.parts
    assert (text, form, braces, none, end) == ("a", ".4f", "{b}", "", "\n")
    assert x.span.text == "x" and call.arg.span.text == '$"in{z}"'
    assert expr('$""').parts == () and expr('$"{a :: b}"').parts[0][0].span.text == "a :: b"


def test_spans():
    source = Source("t.dp", "let f x =\n  g (x + 1) * 2\n")
    (decl,) = parse(source).decls
    body = decl.bindings[0].body
    assert body.span.text == "g (x + 1) * 2" and body.op_span.text == "*"
    assert body.left.arg.span.text == "(x + 1)" and str(body.span) == "t.dp:2:3"


def test_declarations_need_no_separator():
    text = 'import Nn import "a.dp" as A open Nn type t = A | B let x = f y '
    text += 'let rec g x = x and h y = y do g x expect "e" = true'
    kinds = [type(d).__name__ for d in parse(Source("t.dp", text)).decls]
    assert kinds == ["DeclImport", "DeclImport", "DeclOpen", "DeclType", "DeclLet", "DeclLet", "DeclDo", "DeclExpect"]


def test_documentation():
    decls = parse(
        Source(
            "t.dp", "-- | Doc\n--   of f\nlet f = 1\n\n-- | far\n\nlet g = 2\n-- plain\ntype t = A\n-- | u\nand u = B"
        )
    ).decls
    assert decls[0].doc == "Doc\nof f" and decls[1].doc == "" and [d.doc for d in decls[2].defs] == ["", "u"]


def test_types():
    assert bare(parse_type("'a[n, m] -> int[m] -> 'a[?] * unit")) == bare(
        parse_type("('a[n, m]) -> ((int[m]) -> ((('a[?])) * unit))")
    )
    assert bare(parse_type("('a, n + 1, 3) t list")) == bare(
        parse_type("((('a, (n + 1), 3) t)) list".replace("(n + 1)", "n + 1"))
    )
    node = parse_type("float -{ctl int}-> 3 vec")
    assert isinstance(node, tree.TyFun) and node.ctl and isinstance(node.result.args[0], tree.SizeNum)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10000 + "1" + ")" * 10000,
        "let x = 1 in " * 10000 + "x",
        f"[{'1; ' * 5000}]",
        "1 :: " * 5000 + "[]",
        "f x; " * 5000 + "1",
        "- " * 3000 + "x",
    ],
    ids=["parentheses", "lets", "list", "cons", "steps", "signs"],
)
def test_deep_and_long(text):
    expr(text)


@pytest.mark.clock
def test_speed():
    text = "let f (x, y) = if x > 1.0 then [x + 2.0 * y, g x y] else map (fun z -> z ** 2) ys[1:n]\n" * 500
    tables.tables()
    start = time.process_time()
    parse(Source("t.dp", text))
    assert time.process_time() - start < 0.5


def test_tables_survive_a_bad_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DPL_CACHE", str(tmp_path / "new"))
    tables.tables.cache_clear()
    made = tables.tables()
    (file,) = (tmp_path / "new").glob("grammar-*")
    for damage in (b"", b"garbage", file.read_bytes()[:1000]):
        file.write_bytes(damage)
        tables.tables.cache_clear()
        assert tables.tables().words == made.words and len(tables.tables().states) == len(made.states)
    monkeypatch.setenv("DPL_CACHE", "/dev/null/nowhere")
    tables.tables.cache_clear()
    assert tables.tables().words == made.words


def test_grammar_choices_are_the_known_ones():
    """Lark says nothing when it shifts where it could reduce; these are the places where that is meant."""
    import logging

    from lark import logger

    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        tables.construct((tables.resources.grammar() / "dpl.lark").read_text())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    rules = {line.strip(" *<>").split(" :")[0] for m in seen for line in m.split("\n") if line.startswith(" *")}
    assert rules == {"atom", "operand", "seq", "expr"}
