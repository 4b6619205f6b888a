"""shift and reset become functions, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from dpl.source import Source
from dplc.passes.closures.show import show_mono
from dplc.passes.control.cps import explicit_control
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

PROGRAMS = sorted((ROOT / "tests" / "agree" / "programs").glob("*.dp")) + sorted((ROOT / "examples").glob("*.dp"))


def mono_of(source: Source):
    return on_large_stack(lambda: compile_to("mono", source, Context())[1])


def definitions(text: str) -> dict[str, str]:
    """The functions of a program after the pass, without their types' declarations, by their names."""
    shown = show_mono(explicit_control(mono_of(Source("it.dp", text))))
    parts = ("\n" + shown).split("\ndef ")[1:]
    return {part.split(" ")[0].split("@")[0]: "def " + part.split("\ndo\n")[0].rstrip() for part in parts}


def test_what_captures_takes_its_continuation():
    made = definitions("let f x = 1 + (shift k -> k (k x))\ndo print (reset (f 2))\n")
    assert made["main.f"] == (
        "def main.f =\n"
        "  fun (x.1 : i64) ->\n"
        "    fun (k.c1 : i64 -> i64) ->\n"
        "      let k.2 = fun (v.c2 : i64) ->\n"
        "          k.c1 add(1:i64, v.c2) in\n"
        "      k.2 (k.2 x.1)"
    ).replace("main.f =", made["main.f"].split(" ")[1] + " =")


def test_a_continuation_that_is_called_last_is_none():
    made = definitions("let f x = 1.0 + (shift k -> k (2.0 * x))\ndo print (reset (f 2.0))\n")
    assert "k.c1 add(1.0:f64, mul(2.0:f64, x.1))" in made["main.f"]
    assert made["main.f"].count("fun") == 2


def test_functions_of_several_arguments_take_the_continuation_with_the_last():
    text = (
        "let rec each f xs = match xs with [] -> () | x :: rest -> f x; each f rest\n"
        "do print (reset (each (fun x -> shift k -> x + k ()) [1; 2]; 0))\n"
    )
    made = definitions(text)["main.each"]
    assert made.count("fun (") == 4  # f, xs, the continuation of all, and that of `f x`
    assert "main.each" in made and ") rest" not in made.split("fun (v")[0]


def test_what_comes_before_is_done_before():
    text = "let f x = (print x; x)\ndo print (reset (f 1 + (shift k -> k 2) * (shift k -> (print 5; k 3))))\n"
    shown = show_mono(explicit_control(mono_of(Source("it.dp", text))))
    assert shown.index("let v.c") < shown.index("print(5:i64)")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_what_does_not_capture_stays_as_it_is(program: Path) -> None:
    mono = mono_of(Source(program.name, path=program))
    after = explicit_control(mono)
    if not mono.control:
        assert after is mono
        return
    for name, e in mono.functions.items():
        before, now = (show_mono(type(mono)({name: f})) for f in (e, after.functions[name]))
        if not any(word in before for word in ("ctl ", "shift ", "reset ")) and before != now:
            # all that may differ is how it mentions functions that capture, inside of what it delimits
            assert "fun (k.c" in now or "fun (v.c" in now, before
