"""Run-time errors: what they say, where they point, which calls led there."""

from __future__ import annotations

import io

import pytest
from dpl.debug.debugger import Debugger
from dpl.diagnostics import Diagnostic, DplError
from dpl.eval.machine import machine
from dpl.eval.run import ProgramExit, run
from dpl.source import Source
from dpl.syntax.load import load
from dpl.types.check import check_program
from dplc.pipeline import Context, compile_to


def output(text: str, *args: str) -> str:
    program, _ = check_program(load(Source("main.dp", text)))
    out = io.StringIO()
    run(program, args=args, out=out)
    return out.getvalue()


def failure(text: str) -> Diagnostic:
    with pytest.raises(DplError) as caught:
        output(text)
    return caught.value.diagnostics[0]


def test_place_and_path():
    error = failure("let f x = 1 / x\nlet g y = f (y - 1) + 1\ndo print (g 1)")
    assert (error.code, error.title, str(error.span)) == ("R0701", "division by zero", "main.dp:1:11")
    assert [(call.name, call.span.line) for call in error.path if call.span] == [("g", 3), ("f", 2)]


CALLS = """let bad (x : float) : float = if x > 0.0 then error "no" else x
let rec rr (k : int) (x : float) : float = if k <= 0 then x else rr (k - 1) x
let rec add (k : int) (x : float) (y : float) : float = if k <= 0 then x + y else add (k - 1) x y
type t = Leaf | Node of t * float * t
"""


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("let f x = 1.0 + rr 0 (bad (rr 2 x))\ndo print (f 1.0)", "f bad"),
        ("let f x = add 2 (rr 1 x) (bad (rr 2 x))\ndo print (1.0 + f 1.0)", "f bad"),
        ("let f x = [rr 1 x, 1.0 + rr 2 (bad x)]\ndo print (f 1.0)", "f bad"),
        ("let f x = 1.0 + (add 1 (rr 1 x)) (rr 2 (bad x))\ndo print (f 1.0)", "f bad"),
        ("let f g x = 1.0 + g 1 (bad x)\ndo print (2.0 * f rr 1.0)", "f bad"),
        ("let f x = Node (Leaf, rr 1 (bad x), Leaf)\ndo print (f 1.0 = Leaf)", "f bad"),
        ("let f x = match rr 1 (bad x) with | 1.0 -> 2.0 | y -> y\ndo print (1.0 + f 1.0)", "f bad"),
        ("let f x = loop s = x for i < 3 do 1.0 + add 1 s (bad (float i))\ndo print (f 1.0)", "f bad"),
        ("let rec f n x = if n = 0 then 1.0 + bad x else 1.0 + add 1 1.0 (f (n - 1) x)\ndo print (f 1 1.0)", "f f bad"),
        ("let rec f n x = if n = 0 then bad x + 1.0 else f (n - 1) (rr 1 x)\ndo print (add 1 1.0 (f 2 1.0))", "f bad"),
        ("let g x = 1.0 + rr 1 (bad x)\nlet f x = reset (1.0 + shift k -> k (g x))\ndo print (f 1.0)", "f g bad"),
        ("let f x = 1.0 + rr 1 (bad x)\ndo print (1.0 + grad (fun z -> z * f z) 1.0)", "grad f bad"),
    ],
)
def test_calls_whose_operands_fail_have_not_begun(text: str, calls: str):
    """The path of the interpreter, and of the debugger's code."""
    text = CALLS + text
    context = Context()
    debugger = Debugger(compile_to("check", Source("main.dp", text), context)[1], context.modules, [], io.StringIO())
    debugger.start()
    debugger.go("continue")
    assert debugger.run.ended and debugger.run.ended.error
    for error in (failure(text), debugger.run.ended.error.diagnostics[0]):
        assert " ".join(call.name for call in error.path) == calls


def test_library_errors_point_to_the_users_call(monkeypatch):
    monkeypatch.setenv("DPL_VERBOSE", "1")
    error = failure("let empty = [for _ < 0 -> 1.0]\ndo print (maximum empty)")
    assert "maximum" in error.title
    assert error.span and "maximum empty" in error.span.text
    assert error.labels[0].text == "raised here"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("do print ([1, 2, 3][List.length Sys.args + 3])", "index 3 is out of bounds for length 3"),
        ("do print (diff (fun x -> [x][int x]) 1.0)", "index 1 is out of bounds for length 1"),
        ("do print (1 % length [for i < 0 -> i])", "division by zero"),
        ('do print (error "no way" + 1)', "no way"),
        ("do assert (1 > 2)", "1 > 2 does not hold"),
        ("do assert (any [false])", "an assertion does not hold"),
        ("do print [for i < List.length Sys.args - 1 -> i]", "an array cannot have -1 elements"),
        (
            "let (_, pull) = vjp (fun v -> filter (fun _ -> true) v) [1.0, 2.0, 3.0]\ndo print (pull [1.0, 2.0])",
            "the cotangent does not fit the result: sizes 2 and 3 differ",
        ),
        (
            "let f x = with_jvp (fun x -> x * x) (fun x dx -> (x * x, dx * dx)) x\ndo print (grad f 3.0)",
            "the rule given to `with_jvp` is not linear in its tangent",
        ),
        ('do print_string (Data.read_text "no such file")', "cannot read no such file: No such file or directory"),
    ],
)
def test_titles(text: str, title: str):
    assert failure(text).title == title


def test_runaway_recursion(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DPL_STACK", "80")
    monkeypatch.setattr(machine, "SLICE", 50_000)
    error = failure("let rec f x = if x = 0 then 0 else 1 + f x - 1\ndo print (f 1)")
    assert error.code == "R0801" and error.helps == ("`f x - 1` is  (f x) - 1 : was  f (x - 1)  meant?",)
    assert len(error.path) == 13 and error.path[6].name.endswith(" more")


def test_output_so_far_is_written_and_exit_is_no_error():
    program, _ = check_program(load(Source("main.dp", 'do print_string "before"\ndo Sys.exit 3\ndo print 1')))
    out = io.StringIO()
    with pytest.raises(ProgramExit) as caught:
        run(program, out=out)
    assert (out.getvalue(), caught.value.code) == ("before", 3)


def test_arguments():
    assert output("do print Sys.args", "a", "b") == '["a"; "b"]\n'
