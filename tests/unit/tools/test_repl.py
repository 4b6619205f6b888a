"""`dpl repl`: sessions without a terminal, and on one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

ENGINES = ("native", "interp")
EITHER = pytest.mark.parametrize("engine", ENGINES)

SESSION = """
let x = 1
x + 1
let f n =
  if n = 0 then 1
  else n * 2

f 21
it * 2
type p = { a : float; b : int list }
let q = { a = 1.5; b = [1; 2] }
q.a
grad (fun x -> x ** 3.0) 2.0
[1.0, 2.0] + 1.0
"tab\\t"
print "hello"
let r = ref 0
r := 5; !r
1 +
  2
let (a, b) = (true, Some [1; 2])
let x = 2.5
f
"""

ANSWERS = """\
x : int = 1
it : int = 2
f : 'a -> 'a with 'a : num, 'a : scalar
it : int = 42
it : int = 84
q : p = { a = 1.5; b = [1; 2] }
it : float = 1.5
it : float = 12.0
it : float[2] = [2.0, 3.0]
it : string = "tab\\t"
hello
r : int ref = ref 0
it : int = 5
it : int = 3
a : bool = true
b : int list option = Some [1; 2]
x : float = 2.5
it : 'a -> 'a with 'a : num, 'a : scalar
"""


@EITHER
def test_a_session(dpl, engine: str) -> None:
    run = dpl("repl", "--engine", engine, stdin=SESSION)
    assert (run.stdout, run.stderr, run.returncode) == (ANSWERS, "", 0)


@EITHER
def test_errors_leave_the_session_intact(dpl, engine: str) -> None:
    text = 'let x = 1\nlet x = x + "a"\nlet y = [1, 2][x + 4]\ny\nlet = 3\nlet t =\n  (1 +\n:nothing\nx\n'
    run = dpl("repl", "--engine", engine, stdin=text)
    assert run.returncode == 1
    assert run.stdout == "x : int = 1\nit : int = 1\n"
    for said in ("E0201", "R0705", "there is no value `y`", "E0101", "there is no `:nothing`"):
        assert said in run.stderr
    assert run.stderr.count("error[") == 5


@EITHER
def test_verbs(dpl, tmp_path: Path, engine: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text("-- | One more.\nlet next x = x + 1\nlet two = next 1\n", encoding="utf-8")
    text = f":load {file}\n:type next\n:doc next\n:doc List.map\nnext two\n:time next 4\n:dump lower next\n:engine\n"
    run = dpl("repl", "--engine", engine, stdin=text + ":reload\nit\n:help\n:quit\nx\n")
    assert run.stderr.count("error[") == 1 and "there is no value `it`" in run.stderr  # :reload begins anew
    lines = run.stdout.split("\n")
    assert lines[:2] == ["next : 'a -> 'a with 'a : num", "two : int = 2"]
    assert lines[2] == "'a -> 'a with 'a : num" and lines[4] == "One more."
    assert "`f` of every element, in order." in lines and "it : int = 3" in lines and "it : int = 5" in lines
    assert any(line.endswith(" ms") for line in lines) and engine in lines
    assert any(line.startswith("fn next") for line in lines)
    assert any(line.strip().startswith(":dump STAGE") for line in lines)


@pytest.mark.parametrize(
    ("engine", "lines"),
    [("interp", 1000), ("native", 100), *[pytest.param(e, 10_000, marks=pytest.mark.slow) for e in ENGINES]],
)
def test_a_long_paste(dpl, engine: str, lines: int) -> None:
    text = "".join(f"let x{i} = {i} + 1\n" for i in range(lines))
    run = dpl("repl", "--engine", engine, stdin=text + f"x{lines - 1}\n", timeout=300)
    assert run.stdout.endswith(f"x{lines - 1} : int = {lines}\nit : int = {lines}\n") and run.stderr == ""


def test_program_exits(dpl) -> None:
    assert dpl("repl", stdin="Sys.exit 3\n1\n").returncode == 3


def test_values_that_hold_functions(dpl) -> None:
    text = (
        "let add n = fun m -> m + n\nlet three = add 3\nthree 5\nlet fs = [three; add 4]\nList.map (fun f -> f 1) fs\n"
    )
    run = dpl("repl", stdin=text)
    assert run.stdout.endswith("it : int list = [4; 5]\n")
    text = "let counter = let n = ref 0 in fun () -> n := !n + 1; !n\ncounter ()\ncounter ()\n"
    run = dpl("repl", stdin=text)
    assert run.stdout.endswith("it : int = 1\nit : int = 2\n")
    assert (
        run.stderr
        == "`counter` holds functions, and things happen when it is made: the session goes on in the interpreter\n"
    )


def test_values_live_on(dpl) -> None:
    """Memory of one input is used by others: arrays, strings, data, references, while much is made and dropped."""
    lines = ['let text = "constant"', "let xs = [for i < 1000 -> float i]", "let cells = [ref 1.0; ref 2.0]"]
    lines += ["type tree = Leaf of float[?] | Node of tree * tree", "let t = Node (Leaf xs, Leaf [1.0, 2.0])"]
    for i in range(10):
        lines += [f"let big{i} = [for i < 100000 -> float i]", f"sum big{i}", f"let xs = {{ xs with [{i}] = 0.5 }}"]
        lines += ["do List.iter (fun c -> c := !c * 2.0) cells"]
    lines += ["sum xs", "cells", "text", "match t with Node (Leaf a, Leaf b) -> (sum a, b) | _ -> (0.0, [0.0, 0.0])"]
    run = dpl("repl", stdin="\n".join(lines) + "\n")
    assert run.stderr == "" and run.stdout.endswith(
        'it : float = 499460.0\nit : float ref list = [ref 1024.0; ref 2048.0]\nit : string = "constant"\n'
        "it : float * float[?] = (499500.0, [1.0, 2.0])\n"
    ), run.stdout[-300:]


@pytest.fixture(params=ENGINES)
def terminal(request: pytest.FixtureRequest, dpl, cache: Path, tmp_path: Path):
    """A session on a terminal, with a history of its own, and the library and runtime that a first run left."""
    pexpect = pytest.importorskip("pexpect", reason="extra dev")
    dpl("run", "-", stdin="do print 1\n")
    for entry in cache.iterdir():
        if entry.name != "history":
            (tmp_path / entry.name).symlink_to(entry)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}",
        "DPL_CACHE": str(tmp_path),
        "TERM": "xterm",
        "NO_COLOR": "1",
        "PROMPT_TOOLKIT_NO_CPR": "1",  # nobody answers where the cursor is
    }
    child = pexpect.spawn(
        sys.executable,
        ["-m", "dplc.cli", "repl", "--engine", request.param],
        env=environment,
        encoding="utf-8",
        timeout=60,
        dimensions=(40, 120),
    )
    child.expect("dpl>")
    yield child
    child.close(force=True)


def test_on_a_terminal(terminal) -> None:
    terminal.send("let f x =\r")  # is not complete
    terminal.send("x * 2\r")
    terminal.expect("f : 'a -> 'a")
    terminal.send("f 21\r")
    terminal.expect("it : int = 42")
    terminal.send("loop x = 0 while true do x\r")
    terminal.expect_exact("\x1b[?2004l")  # the input is taken
    time.sleep(1)
    terminal.sendintr()
    terminal.expect("interrupted")
    terminal.send("it\r")
    terminal.expect("it : int = 42")
    terminal.send(":q\t\r")
    terminal.expect("quit|$")
    terminal.sendeof()


@EITHER
def test_names_with_letters_of_all_alphabets(dpl, engine: str) -> None:
    run = dpl("repl", "--engine", engine, stdin="let größe = 3\nlet α' = größe + 1\ngröße * α'\n")
    assert (run.stdout, run.stderr) == ("größe : int = 3\nα' : int = 4\nit : int = 12\n", "")


def test_small_arrays_in_values_that_live_on(dpl) -> None:
    """Inputs are compiled alone, so what one keeps lies in memory as the others take it to lie."""
    session = """
type p = { pos : float[2]; m : float }
type s = Ball of float[3] | Point
let ps = [for i < 3 -> { pos = [float i, 1.5]; m = 2.0 }]
sum [for q in ps -> q.pos[0] + q.pos[1] * q.m]
let shapes = [Ball [1.0, 2.0, 3.0]; Point]
List.sum (List.map (fun s -> match s with Ball v -> sum v | Point -> 0.5) shapes)
let last = ref (ps[2].pos, 1)
fst !last
"""
    run = dpl("repl", stdin=session)
    answers = [line.partition(" = ")[2] for line in run.stdout.splitlines()]
    assert (run.returncode, answers[1], answers[3], answers[5]) == (0, "12.0", "6.5", "[2.0, 1.5]"), run.stdout


@EITHER
def test_derivatives_and_earlier_values(dpl, engine: str) -> None:
    """What earlier inputs made is a constant to derivatives, also beside results of its type; references are not."""
    text = (
        "let start = (1.0, [1.0, 2.0])\nlet loss (b, w) = b * sum (w * w)\nlet e = grad loss start\n"
        "let r = ref 2.0\nlet f x = begin r := !r * x; !r * x end\ngrad f 3.0\n"
    )
    run = dpl("repl", "--engine", engine, stdin=text)
    assert "e : float * float[2] = (5.0, [2.0, 4.0])\n" in run.stdout and run.stdout.endswith("it : float = 12.0\n")
    assert run.returncode == 0 and ("goes on in the interpreter" in run.stderr) == (engine == "native")


ASKED = [
    ("1 + 1\n", "it : int = 2\n"),
    ("let f (x : float) =\n  x + 1.0\n", "f : float -> float\n"),
    ("let y = 1 +\n2\n", "y : int = 3\n"),
    (":type f\n", "float -> float\n"),
    ("let z = 1\n\n  + 2\nz", "z : int = 3\n"),
]


def test_answers_come_at_once(dpl_process) -> None:
    """Each before the next input is written."""
    session = dpl_process("repl")
    for text, answer in ASKED:
        session.stdin.write(text)
        session.stdin.flush()
        assert session.stdout.readline() == answer
    assert session.communicate("\n", timeout=60)[0] == "it : int = 3\n"


@pytest.fixture
def dpl_process(cache: Path):
    """`dpl_process(*args)` starts the command behind pipes."""
    running = []

    def start(*args: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lang'}:{ROOT / 'compiler'}", "DPL_CACHE": str(cache)}
        command = [sys.executable, "-m", "dplc.cli", *args]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()
