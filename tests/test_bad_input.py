"""What can go wrong, seen from outside: one clear message, the right exit code, never a traceback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.diagnostics import DplError
from dpl.source import Source
from dpl.syntax.parse import parse

BOTH = pytest.mark.parametrize("engine", ["interp", "native"])


def check(run, code: int, *words: str) -> None:
    assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
    assert "Traceback" not in run.stderr and "internal error" not in run.stderr
    for word in words:
        assert word in run.stderr, run.stderr


def run_text(dpl, tmp_path, text: str, *options: str, **more):
    file = tmp_path / "bad.dp"
    file.write_text(text, encoding="utf-8")
    return dpl("run", *options, file, **more)


def test_missing_file(dpl) -> None:
    check(dpl("run", "nowhere.dp"), 1, "nowhere.dp")


def test_directory(dpl, tmp_path) -> None:
    check(dpl("run", tmp_path), 1, "director")


def test_binary_file(dpl, tmp_path) -> None:
    file = tmp_path / "x.dp"
    file.write_bytes(bytes(range(256)))
    check(dpl("run", file), 1, "UTF-8")


@BOTH
def test_empty_file(dpl, tmp_path, engine) -> None:
    run = run_text(dpl, tmp_path, "", "--engine", engine)
    check(run, 0)
    assert run.stdout == run.stderr == ""


def test_syntax_error(dpl, tmp_path) -> None:
    check(run_text(dpl, tmp_path, "let x = (1 +\nlet y = 2\n"), 1, "error[E01", "bad.dp:", "^")


def test_type_error(dpl, tmp_path) -> None:
    check(run_text(dpl, tmp_path, 'let x = 1 + "a"\n'), 1, "error[E02", "bad.dp:1:", "^")


@BOTH
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("let xs = [1, 2, 3]\nlet rec last i = xs[i + 2]\ndo print (last 3)\n", ("index 5", "length 3", "bad.dp:2:")),
        ("let xs = [1, 2, 3]\ndo print xs[-1]\n", ("index -1", "length 3")),
        ("let f a b = a / b\ndo print (f 1 0)\n", ("division by zero", "bad.dp:1:")),
        ("let f a b = a % b\ndo print (f 1 0)\n", ("division by zero", "bad.dp:1:")),
        ('do error "no luck"\n', ("no luck", "bad.dp:1:")),
        ("do assert (1 > 2)\n", ("assert", "bad.dp:1:")),
        ("let xs = filter (fun x -> x > 5.0) [1.0, 2.0]\ndo print (maximum xs)\n", ("maximum",)),
        ("let rec f x = 1 + f (x + 1)\ndo print (f 0)\n", ("deep",)),
        (
            "let ys = [1.0, 2.0]\nlet xs = filter (fun x -> x > 0.0) [1.0, 2.0, 3.0]\ndo print (xs + ys)\n",
            ("3", "2", "bad.dp:3:"),
        ),
        ('do print (Data.read_text "no such file")\n', ("no such file",)),
        ("do print [for i < 0 - 2 -> i]\n", ("-2",)),
    ],
)
def test_run_time_errors(dpl, tmp_path, engine, text, words) -> None:
    run = run_text(dpl, tmp_path, 'do print "before"\n' + text, "--engine", engine, DPL_STACK="16")
    shifted = [re.sub(r"(?<=bad\.dp:)\d", lambda line: str(int(line[0]) + 1), word) for word in words]
    check(run, 1, "error[R0", *shifted)
    assert run.stdout == "before\n"


@BOTH
def test_exit_code(dpl, tmp_path, engine) -> None:
    run = run_text(dpl, tmp_path, 'do print "a"\ndo Sys.exit 7\ndo print "b"\n', "--engine", engine)
    assert (run.returncode, run.stdout, run.stderr) == (7, "a\n", "")


@BOTH
def test_interrupt(tmp_path, cache, engine) -> None:
    file = tmp_path / "forever.dp"
    file.write_text('do print "started"\nlet rec f x = f (x + 1)\ndo print (f 0)\n', encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lang'}:{ROOT / 'compiler'}", "DPL_CACHE": str(cache)}
    process = subprocess.Popen(
        [sys.executable, "-m", "dplc.cli", "run", "--engine", engine, str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        assert process.stdout
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert "interrupted" in err and "Traceback" not in err


def test_unknown_verb(dpl) -> None:
    check(dpl("chek", "x.dp"), 2, "check")


def test_unknown_option(dpl) -> None:
    check(dpl("run", "--fast", "x.dp"), 2, "--fast")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("DPL_DEVICE", "gpuu"), ("DPL_THREADS", "0"), ("DPL_THREADS", "two"), ("DPL_STACK", "big"),
     ("DPL_DEVICE_LEAST", "1e6"), ("DPL_INTERPRET", "-1"), ("DPL_OPTIMISE", "no")],
)  # fmt: skip
def test_settings_that_mean_nothing(dpl, variable: str, value: str) -> None:
    check(dpl("run", "examples/hello.dp", **{variable: value}), 2, variable, value)


@pytest.mark.parametrize("stage", ["check", "lower", "place", "llvm", "ptx"])
def test_a_dump_of_what_is_not_there(dpl, stage: str) -> None:
    check(dpl("dump", stage, "--fn", "no_such_name", "examples/hello.dp"), 2, f"`{stage}`", "`no_such_name`")


def test_the_interpreter_on_a_device(dpl) -> None:
    check(dpl("run", "--device", "gpu", "--engine", "interp", "examples/hello.dp"), 2, "--device gpu")


def test_no_file(dpl) -> None:
    check(dpl("run"), 2, "FILE")


def test_standard_input(dpl) -> None:
    run = dpl("run", "-", stdin="do print 1\n")
    assert (run.returncode, run.stdout) == (0, "1\n")


def test_corrupt_cache(dpl, cache, tmp_path) -> None:
    file = tmp_path / "hello.dp"
    file.write_text('do print "hello"\n', encoding="utf-8")
    folder = tmp_path / "cache"
    assert dpl("run", file).stdout == "hello\n"
    for entry in filter(Path.is_file, cache.rglob("*")):
        damaged = folder / entry.relative_to(cache)
        damaged.parent.mkdir(parents=True, exist_ok=True)
        damaged.write_bytes(b"not what it was")
    assert dpl("run", file, DPL_CACHE=str(folder)).stdout == "hello\n"


def test_cache_folder_unusable(dpl, tmp_path) -> None:
    file = tmp_path / "hello.dp"
    file.write_text('do print "hello"\n', encoding="utf-8")
    blocker = tmp_path / "blocker"
    blocker.write_text("a file, not a folder")
    run = dpl("run", "--engine", "interp", file, DPL_CACHE=str(blocker / "cache"))
    assert (run.returncode, run.stdout) == (0, "hello\n"), run.stderr


@pytest.mark.slow
def test_concurrent_runs(tmp_path) -> None:
    """Several runs fill one empty cache at the same time."""
    file = tmp_path / "hello.dp"
    file.write_text('do print "hello"\n', encoding="utf-8")
    path = f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}"
    environment = {**os.environ, "PYTHONPATH": path, "DPL_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "dplc.cli", "run", str(file)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(4)]
    assert [run.communicate(timeout=120)[0] for run in runs] == ["hello\n"] * 4
    assert all(run.returncode == 0 for run in runs)


# ---- standard streams, names and sizes that a shell can make odd


def in_shell(tmp_path, line: str, cache) -> subprocess.CompletedProcess[str]:
    """Runs a line of the shell in which `dpl` is the command."""
    command = f'dpl() {{ "{sys.executable}" -m dplc.cli "$@"; }}\n{line}'
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT / 'lang'}:{ROOT / 'compiler'}", "DPL_CACHE": str(cache),
        "PYTHONIOENCODING": "ascii", "LC_ALL": "C",
    }  # fmt: skip
    (tmp_path / "a.dp").write_text('do print "hé"\n', encoding="utf-8")
    (tmp_path / "b.dp").write_text('let x : int = "hé"\n', encoding="utf-8")
    return subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, timeout=120, encoding="utf-8"
    )


NO_OUTPUT = "cannot write standard output: Bad file descriptor"
FIRST = "do   print 1\n"
UNTIDY = f"yes '{FIRST.strip()}' | head -n 500 > c.dp"
NO_ROOM = "cannot write"
SHELL = [
    ("dpl run a.dp", 0, "hé\n", ""),
    ("dpl run --engine interp a.dp", 0, "hé\n", ""),
    ("dpl check b.dp", 1, "", "hé"),
    ("dpl run a.dp >&-", 1, "", NO_OUTPUT),
    ("dpl run --engine interp a.dp >&-", 1, "", NO_OUTPUT),
    ("dpl explain --list >&-", 1, "", NO_OUTPUT),
    ("dpl check b.dp 2>&-", 1, "", ""),
    ("dpl check b.dp 2>/dev/full", 1, "", ""),
    ("dpl run a.dp <&-", 0, "hé\n", ""),
    ("dpl run - <&-", 1, "", "<stdin> cannot be read"),
    ("dpl fmt - <&-", 1, "", "<stdin> cannot be read"),
    ("dpl repl <&-", 1, "", "<stdin> cannot be read"),
    ("printf 'do print \\xff' | dpl run -", 1, "", "not UTF-8"),
    ("dpl explain --list | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}", 0, "", ""),
    ("dpl run <(cat a.dp)", 0, "hé\n", ""),
    ("dpl run /dev/stdin < a.dp", 0, "hé\n", ""),
    ("dpl run /dev/null", 0, "", ""),
    ("dpl run /dev/zero", 1, "", "/dev/zero is a device, not a file"),
    ("echo 'import \"/dev/zero\" as Z' > c.dp; dpl run c.dp", 1, "", "/dev/zero is a device, not a file"),
    ("mkfifo f.dp; echo 'import F' > c.dp; dpl run c.dp", 1, "", "f.dp is a pipe, not a file"),
    ("export PYTHONDONTWRITEBYTECODE=1; (ulimit -f 1; dpl build a.dp -o c); ls -A", 0, "a.dp\nb.dp\n", NO_ROOM),
    ("mkfifo p; cat p >q & dpl build --emit llvm a.dp -o p; wait; test -p p -a -s q", 0, "p\n", ""),
    (f"{UNTIDY}; chmod 640 c.dp; ln -s c.dp d.dp; dpl fmt d.dp; stat -c %a c.dp; test -L d.dp", 0, "640\n", "d.dp"),
    (f"{UNTIDY}; (ulimit -f 1; PYTHONDONTWRITEBYTECODE=1 dpl fmt c.dp); head -n 1 c.dp", 0, FIRST, NO_ROOM),
    ("dpl run -e '[1, 2'", 1, "", "<expression>:1:1"),
    ("dpl run -e 'let x = 1 in print x; print 2'", 0, "1\n2\n", ""),
    ("dpl run -e 'let f x = x + 1 do print (f 1)'", 0, "2\n", ""),
    ("ulimit -v 400000; dpl run --no-cache a.dp", 0, "hé\n", ""),
]


@pytest.mark.parametrize(("line", "code", "out", "words"), SHELL, ids=lambda x: x if isinstance(x, str) else "")
def test_odd_streams(tmp_path, cache, line: str, code: int, out: str, words: str) -> None:
    run = in_shell(tmp_path, line, cache)
    check(run, code, words)
    assert run.stdout == out


HUGE = 5000
LITERALS = [
    f"do print 0x{'f' * HUGE}", f"do print {'9' * HUGE}", f"do print (-{'9' * HUGE})", f"do print 0o{'7' * HUGE}u8",
    f"let f (x : float[0x{'f' * HUGE}]) = x", f"do print (match 3 with 0x{'f' * HUGE} -> 1 | _ -> 2)",
]  # fmt: skip


@pytest.mark.parametrize("text", LITERALS, ids=range(len(LITERALS)))
def test_literals_that_no_type_holds(text: str) -> None:
    with pytest.raises(DplError) as caught:
        parse(Source("a.dp", text))
    (problem,) = caught.value.diagnostics
    assert problem.code == "E0104" and len(problem.title) < 100


def test_sizes_that_no_array_has(dpl, tmp_path) -> None:
    sizes = " * ".join(["9999999999999999999"] * 400)
    check(run_text(dpl, tmp_path, f"let f (x : float[{sizes}]) = x\nlet y = f [1.0]\n"), 1, "error[E0301]", "2^")


@BOTH
def test_zero_bytes_in_names(dpl, tmp_path, engine) -> None:
    text = 'do print (Sys.env "PA\\u{0}TH")\ndo print (Data.read_text "a\\u{0}b")\n'
    run = run_text(dpl, tmp_path, text, "--engine", engine)
    check(run, 1, "R0506", "NUL")
    assert run.stdout == "None\n"


@pytest.mark.parametrize(
    "text", ['import "a\\u{0}b.dp" as B', 'extern "si\\u{0}n" f : float -> float', 'extern "" f : int -> int']
)
def test_names_that_the_system_does_not_know(dpl, tmp_path, text: str) -> None:
    check(run_text(dpl, tmp_path, text + "\n"), 1, "error[E0")


EARLY = """
import sys
from dplc import cli
def interrupted():
    raise KeyboardInterrupt
cli.keep_bytecode = interrupted
cli.main()
"""


def test_interrupted_before_anything_is_imported() -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lang'}:{ROOT / 'compiler'}"}
    run = subprocess.run([sys.executable, "-c", EARLY], env=environment, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "interrupted\n")


def test_a_long_chain_of_choices_is_formatted(dpl, tmp_path) -> None:
    """A command that recurses over the program runs on a large stack; in a fork, Python's own limit is gone already."""
    file = tmp_path / "chain.dp"
    file.write_text(f"let f x = {'if x then 1 else ' * 1000}2\n", encoding="utf-8")
    run = dpl("fmt", "--check", file, PYTHONHASHSEED="0")
    assert (run.returncode, run.stderr) == (1, "")
