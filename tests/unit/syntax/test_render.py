"""Pictures of diagnostics, compared as a whole."""

import pytest
from dpl.columns import pictures, width_of
from dpl.diagnostics import Call, Diagnostic, Label, marked
from dpl.render import render, short
from dpl.source import Source, Span

TEXT = """type params = { w1 : f32[784, 128]; w2 : f32[64, 10] }


  let h = relu (x @ p.w1) in
  h @ p.w2
\t日本 = "é" +
    1 + 2
  foo
"""
MLP = Source("mlp.dp", TEXT)


def at(text: str, source: Source = MLP) -> Span:
    start = source.text.index(text)
    return Span(source, start, start + len(text))


def picture(text: str) -> str:
    """A picture in a test, its first newline and the indentation of 4 dropped."""
    return "\n".join(line[4:] for line in text.split("\n")[1:-1])


FULL = Diagnostic(
    "E0301",
    "cannot multiply f32[n, 128] by f32[64, 10]: the inner sizes 128 and 64 differ",
    at("h @ p.w2"),
    "this product needs  [.., k] @ [k, ..]",
    (
        Label(at("128"), "size 128 comes from here"),
        Label(at("64"), "size 64 comes from here"),
        Label(at("x @ p.w1"), "`h` got its 128 columns here"),
    ),
    ("did you mean  w2 : f32[128, 10]  on line 1?",),
    (Call("step p x y", at("foo")), Call("grad loss", at("foo")), Call("loss p x y", at("1 + 2"), "x : f32[n, 784]")),
)


def test_everything():
    assert render(FULL) == picture("""
    error[E0301]: cannot multiply f32[n, 128] by f32[64, 10]: the inner sizes 128 and 64 differ
     --> mlp.dp:5:3
      |
    1 | type params = { w1 : f32[784, 128]; w2 : f32[64, 10] }
      |                               ---            -- size 64 comes from here
      |                               |
      |                               size 128 comes from here
    ...
    4 |   let h = relu (x @ p.w1) in
      |                 -------- `h` got its 128 columns here
    5 |   h @ p.w2
      |   ^^^^^^^^ this product needs  [.., k] @ [k, ..]
      |
      = help: did you mean  w2 : f32[128, 10]  on line 1?
      = path: step p x y      mlp.dp:8
                grad loss     mlp.dp:8
                  loss p x y  mlp.dp:7  x : f32[n, 784]
    """)


def test_a_narrow_terminal():
    lines = render(FULL, width=40).split("\n")
    assert lines[3:7] == [
        "1 | ...f32[784, 128]; w2 : f32[64, 10...",
        "  |             ---            -- size 64 comes from here",
        "  |             |",
        "  |             size 128 comes from here",
    ]


def test_several_lines_tabs_and_wide_characters():
    span = at('日本 = "é" +\n    1 + 2')
    diagnostic = Diagnostic("W0101", "odd", span, "all this", (Label(at("本"), "hon"), Label(at("foo"), "bar")))
    assert render(diagnostic) == picture("""
    warning[W0101]: odd
     --> mlp.dp:6:2
      |
    6 |     日本 = "é" +
      |     ^^^^^^^^^^^^
      |       |
      |       hon
    7 |     1 + 2
      |     ^^^^^ all this
    8 |   foo
      |   --- bar
    """)


def test_two_sources_and_a_line_between():
    other = Source("lib.dp", "a\nlet f = 1\n")
    diagnostic = Diagnostic("E0201", "no", at("type"), "", (Label(at("  let"), "x"), Label(at("f", other), "here")))
    assert render(diagnostic) == picture("""
    error[E0201]: no
     --> mlp.dp:1:1
      |
    1 | type params = { w1 : f32[784, 128]; w2 : f32[64, 10] }
      | ^^^^
    ...
    4 |   let h = relu (x @ p.w1) in
      | ----- x
     ::: lib.dp:2:5
      |
    2 | let f = 1
      |     - here
    """)


def test_without_a_place():
    assert render(Diagnostic("E0510", "there is no file x.dp", helps=("one\ntwo",))) == picture("""
    error[E0510]: there is no file x.dp
      = help: one
              two
    """)
    assert render(Diagnostic("E0101", "end", Span(MLP, len(TEXT), len(TEXT)), "here")) == picture("""
    error[E0101]: end
     --> mlp.dp:9:1
      |
    9 |
      | ^ here
    """)


def test_long_paths_are_abridged():
    lines = render(Diagnostic("R0701", "deep", path=tuple(Call(f"f {i}", at("foo")) for i in range(1000)))).split("\n")
    assert len(lines) == 14 and "... 988 more" in lines[7] and lines[-1].endswith("f 999  mlp.dp:8")


def test_short_and_colors():
    assert short(FULL).startswith("mlp.dp:5:3: error[E0301]: cannot multiply")
    colored = render(FULL, color=True)
    assert "\033[1;31m^^^^^^^^\033[0m" in colored
    import re

    assert re.sub(r"\033\[[0-9;]*m", "", colored) == render(FULL)


def test_texts_to_compare():
    facts = (("expected", f"(float[{marked('3')}, 4] * int) list"), ("found", f"(float[{marked('5')}, 4] * int) list"))
    diagnostic = Diagnostic("E0301", "the sizes differ", at("foo"), facts=facts)
    assert render(diagnostic) == picture("""
    error[E0301]: the sizes differ
     --> mlp.dp:8:3
      |
    8 |   foo
      |   ^^^
      |
      = expected: (float[3, 4] * int) list
                         ~
      =    found: (float[5, 4] * int) list
                         ~
    """)
    colored = render(diagnostic, color=True)
    assert "\033[1;31m5\033[0m, 4]" in colored and "~" not in colored


def test_a_long_text_to_compare_is_cut_around_what_matters():
    text = " * ".join(["float"] * 30) + " * " + marked("bool") + " * float" * 30
    lines = render(Diagnostic("E0201", "no", at("foo"), facts=(("found", text),)), width=60).split("\n")
    (fact,) = [k for k, line in enumerate(lines) if "found" in line]
    assert width_of(lines[fact]) <= 60 and "bool" in lines[fact] and lines[fact].endswith("...")
    assert lines[fact + 1].index("~") == lines[fact].index("bool")


def test_arguments_in_a_path_are_wrapped():
    about = ", ".join(f"p{i} : float[100, 200]" for i in range(6))
    lines = render(Diagnostic("R0701", "no", at("foo"), path=(Call("f", at("foo"), about),)), width=60).split("\n")
    assert all(len(line) <= 60 for line in lines) and sum("float[100, 200]" in line for line in lines) >= 3


def test_helps_are_broken_between_words_but_not_in_code():
    text = "a function of two arguments is written `fun x y -> x + y`, or by its name alone\n    let long = " + "x" * 50
    assert render(Diagnostic("E0101", "no", helps=(text,)), width=40) == picture("""
    error[E0101]: no
      = help: a function of two arguments is
              written `fun x y -> x + y`, or
              by its name alone
                  let long = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
    """)
    odd = render(Diagnostic("E0101", "no", helps=("a lone ` in  a text that is too long for one line",)), width=40)
    assert odd.split("\n")[1:] == ["  = help: a lone ` in  a text that is", "          too long for one line"]


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍🏽", 2), ("👨\u200d👩\u200d👧", 2),
        ("🇫🇷🇩🇪", 4), ("❤\ufe0f", 2), ("\t", 4), ("ab\tc", 5),
    ],
)  # fmt: skip
def test_columns(text: str, width: int):
    assert width_of(text) == width


def test_an_underline_after_emoji_stands_below_its_word():
    source = Source("a.dp", 'let s = "👨\u200d👩\u200d👧 日本" ++ wrong\n')
    lines = render(Diagnostic("E0202", "no", at("wrong", source))).split("\n")
    assert lines[4].index("^") == len('1 | let s = "') + 2 + 1 + 4 + len('" ++ ')


def test_no_more_than_four_labels():
    labels = tuple(Label(Span(MLP, k, k + 1), f"label {k}") for k in range(10))
    text = render(Diagnostic("E0201", "no", at("foo"), labels=labels, helps=("a", "b", "c")))
    assert text.count("label") == 4 and text.count("help") == 2


def test_of_a_line_without_end_only_what_is_near_is_looked_at(monkeypatch):
    """A program may be one line; each of its warnings shows a piece of it."""
    looked = []
    monkeypatch.setattr("dpl.render.pictures", lambda text: looked.append(len(text)) or pictures(text))
    source = Source("long.dp", " ".join(f"let name{i} = {i} in" for i in range(2000)) + "\nnext")
    for i in (0, 1, 1000, 1999):
        lines = render(Diagnostic("W0203", "unused", at(f"name{i} ", source), "here")).split("\n")
        under = lines[3][lines[4].index("^") : lines[4].rindex("^") + 1]
        assert under == f"name{i} " and max(map(len, lines)) <= 100
        assert lines[3].startswith("1 | ...") == (i > 1) and lines[3].endswith("...") == (i < 1999)
    apart = Diagnostic("W0203", "unused", at("name5 ", source), "here", (Label(at("name1500 ", source), "there"),))
    assert max(map(len, render(apart).split("\n"))) <= 110
    assert render(apart).split("\n")[3].count("name") > 3
    assert max(looked) <= 1000


def test_a_mark_past_the_end_of_a_long_line():
    source = Source("long.dp", "x" * 3000 + "\nnext")
    lines = render(Diagnostic("E0101", "unfinished", Span(source, 3000, 3000), "here")).split("\n")
    assert lines[3].startswith("1 | ...xxx") and len(lines[3]) == lines[4].index("^")
