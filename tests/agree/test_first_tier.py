"""Programs that begin in the interpreter and go on in native code: nothing of that can be seen from outside."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output
from dpl.core import term
from dpl.core.promising import promising
from dpl.source import Source
from dplc.machine.run.cache import find
from dplc.machine.run.linked import quickly_linked
from dplc.machine.run.program import load, run_loaded
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack
from dplc.tools.first_tier import interpreted

HERE = Path(__file__).parent
PROGRAMS = [p for folder in ("cases", "programs") for p in sorted((HERE / folder).glob("*.dp"))]
FEW = ("algorithms", "backtracking", "church", "models", "regressions")
LONG = "10"  # seconds: more than any program here takes

MIXED = """\
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
do print_string "a line in two "
do print "parts"
do print (fib 22)
do print_string "no end of line"
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "program.dp"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "program", [p if p.stem in FEW else pytest.param(p, marks=pytest.mark.slow) for p in PROGRAMS], ids=lambda p: p.stem
)
def test_stopped_at_a_random_moment(dpl, program: Path) -> None:
    moment = random.Random(program.stem).uniform(0.001, 0.05)
    made = dpl("run", program.relative_to(ROOT), DPL_INTERPRET=f"{moment:.4f}")
    assert made.returncode == 0, made.stderr
    assert_same_output(made.stdout, program.with_suffix(".out").read_text(encoding="utf-8"))
    assert "DPL_INTERPRET" not in made.stderr


@pytest.mark.parametrize("seconds", ["0.0001", "0.002", "0.01", LONG])
def test_output_is_there_once(dpl, tmp_path: Path, seconds: str) -> None:
    made = dpl("run", write(tmp_path, MIXED), DPL_INTERPRET=seconds)
    assert (made.returncode, made.stdout) == (0, "a line in two parts\n17711\nno end of line"), made.stderr


def test_what_ends_in_the_interpreter_is_compiled_when_it_runs_again(dpl, tmp_path: Path) -> None:
    file = write(tmp_path, MIXED)
    for compiled in (False, True, True):
        made = dpl("run", file, DPL_INTERPRET=LONG)
        assert (made.returncode, made.stdout) == (0, "a line in two parts\n17711\nno end of line")
        assert (find(file) is not None) == compiled


def test_exit_code(dpl, tmp_path: Path) -> None:
    file = write(tmp_path, "do print 1\ndo if List.length Sys.args = 1 then Sys.exit 7 else ()\ndo print 2\n")
    made = dpl("run", file, "word", DPL_INTERPRET=LONG)
    assert (made.returncode, made.stdout) == (7, "1\n")


@pytest.mark.parametrize(
    "text",
    [
        "do print 1\ndo error \"no\"\n",
        "do print 1\nlet a = [1.0, 2.0]\nlet i = List.length [1; 2; 3]\ndo print a[i]\n",
        "do print 1\nlet rec deep n = 1 + deep (n + 1)\ndo print (deep 0)\n",
    ],
    ids=["error", "index", "depth"],
)  # fmt: skip
def test_native_code_tells_failures(dpl, tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    early = dpl("run", file, DPL_INTERPRET="0.05", DPL_STACK="64")
    native = dpl("run", "--no-cache", file, DPL_STACK="64")
    assert (early.returncode, early.stdout, early.stderr) == (native.returncode, native.stdout, native.stderr)
    assert early.returncode == 1 and early.stdout == "1\n"


def test_standard_input_is_read_once(dpl, tmp_path: Path) -> None:
    file = write(tmp_path, 'do print "name?"\ndo print (Data.read_text "/dev/stdin")\n')
    made = dpl("run", file, stdin="DPL", DPL_INTERPRET=LONG)
    assert (made.returncode, made.stdout) == (0, "name?\nDPL\n")


def test_files_are_written_once(dpl, tmp_path: Path) -> None:
    out = tmp_path / "out"
    file = write(tmp_path, f'do print 1\ndo Data.write_text "{out}" (Data.read_text "{out}" ++ "x")\ndo print 2\n')
    out.write_text("")
    made = dpl("run", file, DPL_INTERPRET=LONG)
    assert (made.returncode, made.stdout, out.read_text()) == (0, "1\n2\n", "x")


def test_what_only_the_interpreter_can_run(dpl, tmp_path: Path) -> None:
    text = "let rec nth n f = if n = 0 then f else nth (n - 1) (grad f)\n"
    file = write(tmp_path, text + "do print 1\ndo print (nth 3 (fun x -> x ** 4.0) 2.0)\n")
    made = dpl("run", file, DPL_INTERPRET=LONG)
    assert made.returncode == 0 and made.stdout == "1\n48.0\n" and "W0219" in made.stderr


def test_digits_that_depend_on_the_engine_are_left_to_native_code() -> None:
    assert begun('do print "first"\ndo print (grad sin 1.0)\ndo print "last"\n') == ("first\n", None)
    assert begun('do print "first"\ndo print (sum [0.1, 0.2, 0.3])\n') == ("first\n0.6000000000000001\n", 0)


@pytest.mark.parametrize(
    "text, worth",
    [
        ("do print 1\ndo print (grad sin 1.0)\n", True),
        ("let f = grad sin\nlet x = f 1.0\ndo print x\n", False),
        ("let x = 1\n", False),
    ],
)
def test_what_is_worth_interpreting(text: str, worth: bool) -> None:
    assert promising(checked(text)) == worth


def begun(text: str) -> tuple[str, int | None]:
    said, code = interpreted(checked(text), [], 10.0)
    return said.decode(), code


def checked(text: str) -> term.Program:
    return on_large_stack(lambda: compile_to("check", Source("t.dp", text), Context())[1])


# ---- signals and pipes


def start(file: Path, cache: Path, seconds: str, **more) -> subprocess.Popen:
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("lang", "compiler"))
    env = {**os.environ, "PYTHONPATH": paths, "DPL_CACHE": str(cache), "DPL_INTERPRET": seconds,
           "DPL_OPTIMISE": "never"}  # fmt: skip
    command = [sys.executable, "-m", "dplc.cli", "run", str(file)]
    return subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


ENDLESS = "let rec count n = let () = print n in count (n + 1)\ndo count 0\n"


@pytest.mark.parametrize("seconds", ["0.01", LONG])
def test_closed_pipe(cache: Path, tmp_path: Path, seconds: str) -> None:
    with start(write(tmp_path, ENDLESS), cache, seconds) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.wait(60) == 141


@pytest.mark.parametrize("seconds", ["0.01", LONG])
def test_interrupted(cache: Path, tmp_path: Path, seconds: str) -> None:
    silent = "do print 0\nlet rec count n = if n < 0 then n else count (n + 1)\ndo print (count 0)\n"
    with start(write(tmp_path, silent), cache, seconds) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b"interrupted\n"


# ---- what native code leaves out


@pytest.mark.parametrize(
    "said, written, differs",
    [
        (b"", b"one two\nthree\n", False),
        (b"one ", b"two\nthree\n", False),
        (b"one two\nthree\n", b"", False),
        (b"one two\nthrow\n", b"three\n", True),
        (b"one too", b"\none two\nthree\n", True),
        (b"one two\nthree\nfour\n", b"", True),
    ],
)
def test_what_was_printed_is_left_out(capfd, said: bytes, written: bytes, differs: bool) -> None:
    """What differs is given again from its line on, and the caller knows."""
    source = Source("t.dp", 'do print_string "one "\ndo print "two"\ndo print "three"\n')
    text, sites = on_large_stack(lambda: compile_to("llvm", source, Context())[1])
    program = quickly_linked(text, sites.to_json())
    loaded = load(program)
    loaded.already(said)
    assert run_loaded(program, loaded, []) == 0
    assert (capfd.readouterr().out.encode(), loaded.differs()) == (written, differs)
