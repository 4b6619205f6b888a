"""`dpl debug` in a terminal: Ctrl-C at any moment, and programs and pipes that end early."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
from conftest import ROOT

FOREVER = "let rec spin (n : int) : int =\n  if n < 0 then n else spin (n + 1)\ndo print (spin 0)\n"
ENVIRONMENT = {
    **os.environ, "PYTHONPATH": f"{ROOT / 'lang'}{os.pathsep}{ROOT / 'compiler'}", "TERM": "xterm", "NO_COLOR": "1",
    "PROMPT_TOOLKIT_NO_CPR": "1",
}  # fmt: skip
PROMPT_ENDS = "\x1b[?2004l"
COMMAND = [sys.executable, "-m", "dplc.cli", "debug"]


@pytest.fixture
def forever(tmp_path: Path) -> Path:
    program = tmp_path / "forever.dp"
    program.write_text(FOREVER)
    return program


def test_ctrl_c_stops_the_program(forever: Path) -> None:
    child = pexpect.spawn(COMMAND[0], [*COMMAND[1:], str(forever)], env=ENVIRONMENT, encoding="utf-8", timeout=30)
    try:
        child.expect("Ctrl-D leaves")
        child.sendline("watch n > 0")
        child.expect("not known here")
        child.expect_exact("(dpl)")
        for _ in range(2):
            child.sendline("continue")
            child.expect_exact(PROMPT_ENDS)
            time.sleep(0.5)  # until the terminal makes signals of keys again
            child.sendintr()
            child.expect("paused")
            child.expect("n > 0 = true|not known here")
            child.expect_exact("(dpl)")
        child.sendline("rstep")
        child.expect("forever.dp:2")
        child.expect_exact("(dpl)")
        child.sendline("quit")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 0
    finally:
        child.close(force=True)


def test_ctrl_c_while_waiting_for_commands(forever: Path) -> None:
    child = subprocess.Popen(
        [*COMMAND, str(forever)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=ENVIRONMENT, text=True,
    )  # fmt: skip
    assert child.stdin and child.stdout
    child.stdin.write("list\n")
    child.stdin.flush()
    assert child.stdout.readline() == "(dpl) list\n"
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    code = child.wait(timeout=60)  # before its input ends, which would end it, too
    _, said = child.communicate()
    assert code == 130 and "Traceback" not in said


def test_bad_input(dpl, forever: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.dp"
    bad.write_text("let x = (1\n")
    assert dpl("debug", bad).returncode == 1 and dpl("debug", tmp_path / "none.dp").returncode == 1
    assert dpl("debug", "-", stdin=FOREVER).returncode == 2
    assert dpl("debug", "--break", "99", forever).returncode == 2
    assert dpl("debug", "--script", tmp_path / "none", forever).returncode == 1
    unknown = dpl("debug", forever, stdin="frobnicate\nquit\n")
    assert unknown.returncode == 1 and "no command `frobnicate`" in unknown.stdout


def test_a_program_without_items(dpl, tmp_path: Path) -> None:
    empty = tmp_path / "empty.dp"
    empty.write_text("-- nothing\n")
    run = dpl("debug", empty, stdin="continue\nrstep\nwhere\nstep\nquit\n")
    assert run.returncode == 0 and run.stdout.count("the program has ended") == 3


def test_a_program_does_not_read_the_commands(dpl, tmp_path: Path) -> None:
    """Also before the first command: changes of a global reference are interpreted on the way to the incident."""
    reads = tmp_path / "reads.dp"
    reads.write_text(
        'let n = ref 0\ndo n := String.length (Data.read_text "/dev/stdin")\ndo print !n\ndo print (1.0 / 0.0)\n'
    )
    run = dpl("debug", "--at", "nonfinite", reads, stdin="continue\nquit\n")
    assert run.returncode == 0 and run.stdout.splitlines()[1] == "0" and "(dpl) quit" in run.stdout
