"""`dpl test` as a user meets it: what passes, what fails and why, reports, properties."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

PROGRAM = """
let square x = x * x
let rec sorted xs = match xs with a :: b :: rest -> a <= b && sorted (b :: rest) | _ -> true
do print "noise"
expect "squares" = square 3.0 = 9.0
expect "false" = square 3.0 = 8.0
expect "gradient" = Test.check_grad square 2.0
expect "unsorted" = Test.for_all (Test.list (Test.int (-50) 50)) sorted
expect "sorts" = Test.for_all (Test.list (Test.int (-50) 50)) (fun xs -> sorted (List.sort xs))
expect "index" = let a = [1, 2] in let i = length a in a[i] = 3
expect "exits" = Sys.exit 3
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "it.dp"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


@pytest.mark.parametrize("engine", ["native", "interp"])
def test_outcomes(dpl, program: Path, engine: str) -> None:
    run = dpl("test", "--engine", engine, program)
    assert run.returncode == 1
    marks = {line.split()[1]: line.split()[0] for line in run.stdout.split("\n") if line[:6].strip() in ("ok", "FAIL")}
    assert marks == {
        "squares": "ok", "false": "FAIL", "gradient": "ok", "unsorted": "FAIL", "sorts": "ok", "index": "FAIL",
        "exits": "FAIL",
    }  # fmt: skip
    assert run.stdout.endswith("3 passed, 4 failed\n")
    assert "9.0 = 8.0 does not hold" in run.stdout and "it.dp:6:18" in run.stdout
    assert "index 2 is out of bounds" in run.stdout and "exit code 3" in run.stdout
    assert "false for [1; 0]" in run.stdout and "of seed 0" in run.stdout
    assert "noise" in run.stdout  # what was printed, of those that fail


def test_choice_and_report(dpl, program: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    run = dpl("test", program, "-k", "INDEX", "--junit", report)
    assert run.returncode == 1 and run.stdout.endswith("0 passed, 1 failed\n")
    (suite,) = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    (case,) = suite
    failure = case.find("failure")
    assert failure is not None and "out of bounds" in failure.get("message", "")
    assert case.get("line") == "10"


SIDES = """
type t = { a : int; b : float list }
expect "list" = List.rev [1; 2] = [1; 2]
expect "string" = "a" ++ "b" = "ac"
expect "record" = { a = 1; b = [1.0;] } = { a = 1; b = [2.0;] }
expect "both" = 1 = 1 && Some 2 = None
expect "inside" = let x = [1, 2] in if length x = 2 then x <> [1, 2] else true
expect "less" = 3 < 2
expect "other" = any [false]
"""


@pytest.mark.parametrize("engine", ["native", "interp"])
def test_both_sides_are_told(dpl, tmp_path: Path, engine: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text(SIDES, encoding="utf-8")
    run = dpl("test", "--engine", engine, file)
    said = [line.partition("]: ")[2] for line in run.stdout.split("\n") if "error[" in line]
    assert said == [
        "[2; 1] = [1; 2] does not hold",
        '"ab" = "ac" does not hold',
        "{ a = 1; b = [1.0;] } = { a = 1; b = [2.0;] } does not hold",
        "Some 2 = None does not hold",
        "[1, 2] <> [1, 2] does not hold",
        "3 < 2 does not hold",
        "an assertion does not hold",
    ]


def test_an_error_of_syntax_has_its_file(dpl, tmp_path: Path) -> None:
    (tmp_path / "fine.dp").write_text('expect "one" = 1 = 1\n')
    (tmp_path / "wrong.dp").write_text('expect "b" = [1; = 3\n')
    run = dpl("test", ".", cwd=tmp_path)
    assert run.returncode == 1 and "FAIL wrong.dp\n" in run.stdout and "wrong.dp:1:14" in run.stdout


def test_seeds(dpl, tmp_path: Path) -> None:
    file = tmp_path / "it.dp"
    file.write_text('expect "small" = Test.for_all (Test.int 0 1000) (fun x -> x < 990)\n', encoding="utf-8")
    runs = {seed: dpl("test", file, "--seed", str(seed)).stdout for seed in range(4)}
    failing = [seed for seed, out in runs.items() if "FAIL" in out]
    assert failing and all("false for 990, found" in runs[seed] for seed in failing)
    assert all(f"of seed {seed}" in runs[seed] for seed in failing)


def test_not_a_program(dpl, tmp_path: Path) -> None:
    (tmp_path / "bad.dp").write_text('expect "one" = 1 + "a"\n', encoding="utf-8")
    (tmp_path / "good.dp").write_text('expect "two" = 1 + 1 = 2\n', encoding="utf-8")
    run = dpl("test", tmp_path)
    assert run.returncode == 1 and run.stdout.endswith("1 passed, 1 failed\n")
    assert "error[E0" in run.stdout


def test_nothing_to_do(dpl, tmp_path: Path) -> None:
    run = dpl("test", tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "no expectations found\n")
    assert dpl("test", tmp_path / "none.dp").returncode == 2


@pytest.mark.parametrize(
    ("generator", "false", "simplest"),
    [
        ("Test.float (-100.0) 100.0", "x < 7.3", "8.0"),
        ("Test.int (-1000) 1000", "x > -437", "-437"),
        ("Test.pair (Test.int 0 9) Test.bool", "not (snd x) || fst x < 3", "(3, true)"),
        ("Test.list (Test.int 0 9)", "List.length x < 3", "[0; 0; 0]"),
        ("Test.array 3 (Test.int 0 9)", "sum x < 12", "[3, 9]"),
        ("Test.map (fun n -> n * 2) (Test.int 0 100)", "x < 50", "50"),
    ],
)
def test_simplest(dpl, tmp_path: Path, generator: str, false: str, simplest: str) -> None:
    file = tmp_path / "it.dp"
    file.write_text(f'expect "it" = Test.for_all ({generator}) (fun x -> {false})\n', encoding="utf-8")
    out = dpl("test", file).stdout
    if simplest == "[3, 9]":  # any three that make 12, none of them more than it needs
        numbers = out.split("false for [")[1].split("]")[0].split(", ")
        assert sum(map(int, numbers)) == 12
    else:
        assert f"false for {simplest}, found" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_expectations_too(tmp_path: Path, cache: Path, number: int) -> None:
    """A terminal sends Ctrl-C to all processes, a time limit only to the first."""
    program, begun = tmp_path / "it.dp", tmp_path / "begun"
    never = f'(Data.write_text "{begun}" "x"; loop i = 1 while i > 0 do i + 1 - i % 2) = 0'
    program.write_text(f'expect "never" = {never}\n', encoding="utf-8")
    os.mkfifo(begun)
    command = [sys.executable, "-m", "dplc.cli", "test", "--engine", "interp", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdin and run.stderr and begun.read_bytes() == b"x"
        run.send_signal(number)
        assert run.stderr.read() == (b"\ninterrupted\n" if number == signal.SIGINT else b"")
        assert run.wait() == (130 if number == signal.SIGINT else -signal.SIGTERM)
        with pytest.raises(BrokenPipeError):  # no process has its other end, which the expectation's inherits
            os.write(run.stdin.fileno(), b"x")
