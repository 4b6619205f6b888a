"""Run-time errors: what they say, where they point, which calls led there."""

from __future__ import annotations

import io

import pytest
from dpl.diagnostics import Diagnostic, DplError
from dpl.eval.machine import machine
from dpl.eval.run import ProgramExit, run
from dpl.source import Source
from dpl.syntax.load import load
from dpl.types.check import check_program


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
