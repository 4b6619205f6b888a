"""`Trace.sweep`: a reverse sweep as data."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from dpl.debug.engine import engine_for
from dpl.debug.recording import Recording
from dpl.eval.run import Interpreter, run
from dpl.source import Source
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

HALVED = """let half y = 0.5 * y
let f x =
  let y = loop y = x for i < 5 do half y in
  y * y
let seen = Trace.sweep f 32.0
"""
PLAIN = ["programs/ad_of_data.dp", "programs/algorithms.dp"]


def output(text: str, engine: type[Interpreter] | None = None) -> str:
    def work() -> str:
        program, out = compile_to("check", Source("main", text), Context())[1], io.StringIO()
        run(program, out=out, engine=engine or engine_for(program))
        return out.getvalue()

    return on_large_stack(work)


def test_visits_have_their_values_and_cotangents() -> None:
    said = output(f"""{HALVED}
do print [for v in Trace.at 1 seen -> (float v.number, v.value, v.cotangent)]
do print (map (fun v -> (v.called, v.line, v.number, v.operations)) (Trace.lines seen))
""")
    halves, lines = said.splitlines()
    assert halves == "[(5.0, 1.0, 2.0), (4.0, 2.0, 1.0), (3.0, 4.0, 0.5), (2.0, 8.0, 0.25), (1.0, 16.0, 0.125)]"
    assert lines == '[("f", 4, 1, 1), ("half", 1, 5, 5), ("seen", 5, 1, 1)]'


def test_zeros_kinks_and_the_first_that_is_not_finite() -> None:
    said = output("""let flat x = (
  let y = x * x in
  0.0 * max y y)
let root x = (
  let y = x - 1.0 in
  sqrt (y * y))
do print (map (fun v -> (v.line, v.zeros, v.kinks)) (Trace.lines (Trace.sweep flat 3.0)))
do print (match Trace.first_bad (Trace.sweep root 1.0) with | Some v -> v.line | None -> 0)
do print (Trace.first_bad (Trace.sweep root 2.0) = None)
""")
    assert said.splitlines() == ["[(3, 1, 1), (2, 1, 0), (7, 1, 0)]", "6", "true"]


def test_levels_of_other_derivatives_do_not_mix() -> None:
    said = output("""let g x y = x * y * y
do print (grad (fun x -> (Trace.sweep (g x) 3.0)[0].value * x) 2.0)
do print (map (fun v -> v.cotangent) (Trace.lines (Trace.sweep (fun x -> grad (g x) 3.0) 2.0)))
""")
    assert said.splitlines() == ["18.0", "[6.0, 1.0]"]


@pytest.mark.parametrize("name", PLAIN)
def test_a_recording_interpreter_computes_the_same(name: str) -> None:
    text = (Path(__file__).parents[2] / "agree" / name).read_text(encoding="utf-8")
    assert output(text, Recording) == output(text, Interpreter) != ""


def test_native_code_hands_over_or_names_the_call(dpl, tmp_path: Path) -> None:
    file = tmp_path / "main.dp"
    file.write_text(f"{HALVED}do print (length seen)\n", encoding="utf-8")
    run = dpl("run", file)
    assert (run.returncode, run.stdout) == (0, "7\n") and "W0219" in run.stderr
    run = dpl("run", "--engine", "native", file)
    assert (run.returncode, run.stdout) == (1, "")
    assert "`Trace.sweep`" in run.stderr and "main.dp:5:12" in run.stderr and "stdlib" not in run.stderr


@pytest.mark.parametrize("engine", ["native", "interp"])
def test_a_session_goes_on_recording(dpl, engine: str) -> None:
    inputs = "let f x = x * x\n(Trace.sweep f 3.0)[0].cotangent\nf 2.0\n"
    run = dpl("repl", "--engine", engine, stdin=inputs)
    assert run.returncode == 0 and "it : float = 1.0\nit : float = 4.0" in run.stdout
    assert run.stderr.count("goes on in the interpreter") == 1
