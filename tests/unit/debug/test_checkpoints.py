"""`--at` and `--nan`: native code runs up to an incident, and the interpreter goes on from the last checkpoint."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from dpl.core import ty as t
from dpl.core.term import LIST
from dpl.debug.reading import Unreadable, is_readable, read
from dpl.debug.run import Ended, Run
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.show import Shower
from dpl.source import Source
from dplc.passes.entry import checkpoints
from dplc.passes.entry.checkpoints import Writer
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack
from dplc.tools.forerun import Resumed, Uneventful, forerun
from dplc.tools.nonfinite import explain

DATA = DataTypes({"list": LIST})
TRAINING = """
let step (p : float * float) (i : int) = let (a, b) = p in (a + grad (fun x -> x * x) 0.5, b - 1e-5)
let train (n : int) p = loop p = p for i < n do step p i
let (reached, left) = train 40000 (0.0, 1.0)
let fails (x : float) = if x < 0.7 then error $"at {reached:.1f}" else x
do print (fails left)
"""


def program_of(text: str):
    context = Context()
    return compile_to("check", Source("main", text), context)[1], context.modules


def resumed(text: str, at: str) -> Resumed | Uneventful | None:
    program, modules = on_large_stack(lambda: program_of(text))
    return forerun(program, modules, [], at)


@pytest.mark.parametrize(
    ("ty", "text"),
    [
        (t.F64, "-0.25"),
        (t.F64, "inf"),
        (t.BOOL, "true"),
        (t.Tup((t.I64, t.STRING)), '(3, "a \\"b\\"\\n")'),
        (t.Arr(t.F64, t.Size(2)), "[1.0, -2.5]"),
        (t.Arr(t.Arr(t.I64, t.Size(3)), t.Size(2)), "[[1, 2, 3], [4, 5, 6]]"),
        (t.list_of(t.F64), "[1.0;]"),
        (t.list_of(t.list_of(t.I64)), "[[1; 2]; []]"),
    ],
)
def test_what_is_shown_is_read_back(ty: t.Ty, text: str) -> None:
    assert Shower(DATA).show((read(text, ty, DATA), 0), t.Tup((ty, t.I64))) == f"({text}, 0)"


def test_what_is_not_read_back() -> None:
    assert not is_readable(t.Tup((t.F64, t.Fn(t.F64, t.PURE, t.F64))), DATA)
    assert not is_readable(t.Con("ref", (t.F64,)), DATA)
    for ty, text in ((t.Arr(t.Arr(t.F64, t.Size(3)), t.Size(0)), "[]"), (t.F64, "1.0 2.0"), (t.I64, "x")):
        with pytest.raises(Unreadable):
            read(text, ty, DATA)


RECURSION = """
let rec train (i : int) (p : float * 'a) : float * 'a =
  if i = 40000 then p else let (a, b) = p in train (i + 1) (a + grad (fun x -> x * x) 0.5, b)
let (reached, left) = train 0 (0.0, "seed")
let rec down (x : float) : float = if x < 0.5 then error $"at {reached:.1f}" else down (x - 1e-5)
do print (down 1.0)
"""


@pytest.mark.parametrize("text", [TRAINING, RECURSION], ids=["loop", "recursion"])
def test_the_rest_of_a_program_ends_as_the_whole(text: str) -> None:
    """The same error with the same numbers, after far fewer steps."""
    found = resumed(text, "error")
    assert isinstance(found, Resumed) and found.skipped
    run = Run(found.program, [], io.StringIO(), found.given)
    run.begin()
    ended = on_large_stack(lambda: run.forward(limit=200_000))
    assert isinstance(ended, Ended) and ended.error
    assert ended.error.diagnostics[0].title == found.failure.diagnostics[0].title == "at 40000.0"


@pytest.mark.parametrize(
    "text",
    [
        "do match Sys.read_line () with | Some line -> error line | None -> print 1.0",  # may read another line next
        'let count = ref 0\ndo count := 3\ndo error "changed"',  # leaving items out would lose the change
        'do error "at once"',
    ],
)
def test_from_the_beginning(text: str) -> None:
    found = resumed(text, "error")
    assert found is None or (isinstance(found, Resumed) and not found.skipped)


def test_without_an_incident(dpl, tmp_path: Path) -> None:
    """The debugger stands at the start: it does not look for what native code has not met."""
    file, script = tmp_path / "main.dp", tmp_path / "script.txt"
    file.write_text("do print (loop x = 0.5 for _ < 1000000 do 3.7 * x * (1.0 - x))\n", encoding="utf-8")
    script.write_text("where\n", encoding="utf-8")
    run = dpl("debug", "--at", "nonfinite", "--script", script, file)
    assert run.returncode == 0 and "native code ran to the end: no call" in run.stdout
    assert "not started" in run.stdout, run.stdout


def test_to_a_call(dpl, tmp_path: Path) -> None:
    file, script = tmp_path / "main.dp", tmp_path / "script.txt"
    file.write_text(TRAINING, encoding="utf-8")
    script.write_text("print x\nback\nwhere\n", encoding="utf-8")
    run = dpl("debug", "--at", "fails", "--script", script, file)
    assert run.returncode == 0 and re.search(r"\n0\.6000000\d+\n", run.stdout), run.stdout + run.stderr


def test_short_floats_are_looked_at(dpl, tmp_path: Path) -> None:
    file = tmp_path / "main.dp"
    program = "let f (xs : f32[n]) : f32[n] = [for x in xs -> sqrt x]\nlet ys = f [f32 1.0, f32 (-1.0)]\n"
    file.write_text(program, encoding="utf-8")
    run = dpl("run", "--engine", "native", "-O0", "--nan", "trap", file)
    assert run.returncode == 1 and "error[R0601]: NaN from `sqrt`" in run.stderr


STEPS = "let n = 400000\n"
GRADIENTS = {  # where the operation is that makes the first number which is not finite
    "function": ("let f (x : float) = loop v = x for i < n do (let r = sqrt v in r * r - 2.6e-6)\n"
                 "do print (grad f 1.0)\n",
                 "NaN from `sqrt`"),
    "sweep": ("let f (w : float) = loop v = 0.5 for i < n do\n"
              "  if i = 100000 then sqrt (v - v) + w * v else v + 1e-9 * w * v\ndo print (grad f 1.0)\n",
              "infinity in the reverse sweep, from the derivative of `sqrt`"),
    "outside": ("let f w = loop v = 0.5 for i < n do if i = 100000 then v + sqrt (w - w) else v + 1e-9 * w\n"
                "do print (value_and_grad f 1.0)\n", "infinity in the reverse sweep, from the derivative of `sqrt`"),
    "after": ("let f w = let (v, _) = loop (v, k) = (0.5, 0) for i < n do (v + 1e-9 * w * v, k + 1) in\n"
              "  w + sqrt (v - v)\n"
              "do print (grad (fun w -> f w) 1.0)\n", "infinity in the reverse sweep, from the derivative of `sqrt`"),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_is_native_until_the_incident(name: str) -> None:
    """The interpreter is given the state of the last steps, and the cotangents of the sweep if it is inside."""
    text, told = GRADIENTS[name]
    program, modules = on_large_stack(lambda: program_of(STEPS + text))
    found = forerun(program, modules, [], "nonfinite", stops_there=True)
    assert isinstance(found, Resumed)
    assert ("main.at.cotangent0" in found.given) == (name in ("sweep", "outside"))
    error = on_large_stack(lambda: explain(found.program, {module.source for module in modules}, [], found.given))
    assert error and error.diagnostics[0].title.startswith(told), error


BEFORE = "let f w = let z = sqrt (w - w) in "
BETWEEN = "let f w = let a = (loop v = w for i < n do v * 0.999 + w) in let z = sqrt (a - a) in "


@pytest.mark.parametrize(
    "text",
    [
        BEFORE + "loop v = z for i < n do v * 0.999 + w",
        BEFORE + "loop v = w for i < n do v * 0.999 + z * w",
        BETWEEN + "loop v = z for i < n do v * 0.999 + w",
        BETWEEN + "fst (loop (v, k) = (z, 0) while k < n do (v * 0.999 + w, k + 1))",
        BETWEEN + "loop v = z for i < n do if i = 1500 then v + (w - w) ** 0.5 else v * 0.999 + w",
    ],
)
def test_the_incident_told_is_that_of_the_whole(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation before a loop is told with the cotangents of all its steps, and after one in the loop."""
    monkeypatch.setattr(checkpoints, "WORTH", 1)
    text = f"let n = 3000\n{text}\ndo print (grad f 1.0)\n"
    program, modules = on_large_stack(lambda: program_of(text))
    own = {module.source for module in modules}
    found = forerun(program, modules, [], "nonfinite", stops_there=True)
    assert isinstance(found, Resumed)
    rest = on_large_stack(lambda: explain(found.program, own, [], found.given))
    whole = on_large_stack(lambda: explain(program, own, [], {}))
    assert rest and whole and rest.diagnostics[0].title == whole.diagnostics[0].title


def test_a_gradient_that_prints_is_left_alone() -> None:
    """Its function would print a second time."""
    quiet = "let f w = loop v = 0.5 for i < 9 do v + 1e-9 * w\nlet slope = grad f 1.0\n"
    for text, loops in ((quiet, 1), (quiet.replace("do v + 1e-9 * w", "do (print v; v + 1e-9 * w)"), 0)):
        program, modules = on_large_stack(lambda text=text: program_of(text))
        writer = Writer(program, {module.source for module in modules})
        writer.rewritten()
        assert len(writer.spots) == loops
