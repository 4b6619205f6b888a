"""Output as others see it: while the program runs, when a signal ends it, and when the reader has gone."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from building import needs_cc, written
from conftest import ROOT

FOREVER = "let rec forever (x : float) : float = if x < 0.0 then x else forever (x * 0.5 + 1.0)\n"
MANY = "(loop _ = () for i < 100 do print i)"
LINES = b"".join(b"%d\n" % i for i in range(100))
ENDING = [signal.SIGTERM, signal.SIGHUP]
LIBRARY = "import dpl, sys; dpl.load(sys.argv[1]).talk(1.0)"
PATIENCE = 60


@pytest.fixture(params=["native", "interp", "executable", "library"])
def start(request, cache, tmp_path, dpl):
    """`start(*steps)` does steps in the background: a program, or a function of a library."""
    kind, running = request.param, []
    if kind == "executable":
        request.getfixturevalue("compiler")
    environment = {
        **os.environ, "PYTHONPATH": f"{ROOT / 'lang'}:{ROOT / 'compiler'}", "DPL_CACHE": str(cache),
    }  # fmt: skip

    def command(steps: tuple[str, ...]) -> list[str | Path]:
        if kind == "library":
            body = ";\n  ".join((*steps, "x"))
            file = written(tmp_path, f"{FOREVER}export let talk (x : float) : float =\n  {body}\n")
            return [sys.executable, "-c", LIBRARY, file]
        file = written(tmp_path, FOREVER + "".join(f"do {step}\n" for step in steps))
        if kind == "executable":
            assert dpl("build", file, "-o", tmp_path / "program").returncode == 0
            return [tmp_path / "program"]
        return [sys.executable, "-m", "dplc.cli", "run", "--engine", kind, file]

    def run(*steps: str, **more) -> subprocess.Popen[bytes]:
        running.append(subprocess.Popen([str(word) for word in command(steps)], env=environment, **more))
        return running[-1]

    run.kind = kind
    yield run
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def compiler():
    """A C compiler, or no test."""
    if needs_cc.mark.args[0]:
        pytest.skip("there is no C compiler `cc`")


def until(process: subprocess.Popen[bytes], end: bytes) -> bytes:
    """What a process prints until it has printed `end`; it must not wait for more."""
    got = b""
    assert process.stdout is not None
    while not got.endswith(end):
        assert select.select([process.stdout], [], [], PATIENCE)[0], got
        more = os.read(process.stdout.fileno(), 1 << 16)
        assert more, got
        got += more
    return got


def test_lines_go_out_before_a_long_computation(start) -> None:
    """One line, many, and one that has no end yet."""
    process = start('print "first"', MANY, 'print_string "tail"', "print (forever 1.0)", stdout=subprocess.PIPE)
    assert until(process, b"tail") == b"first\n" + LINES + b"tail"


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_ends_the_program_loses_nothing(start, tmp_path, number) -> None:
    if start.kind == "library":
        pytest.skip("signals are the host's")
    mark, out = tmp_path / "mark", tmp_path / "out"
    with out.open("wb") as file:
        process = start(MANY, 'print_string "tail"', f'Data.write_text "{mark}" ""', "print (forever 1.0)", stdout=file)
        while not mark.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
    assert out.read_bytes() == LINES + b"tail"


def test_nobody_reads_and_a_signal_ends_it(start) -> None:
    """What cannot be written does not keep the process."""
    if start.kind == "library":
        pytest.skip("signals are the host's")
    process = start("(loop _ = () for i < 1000000000 do print i)", stdout=subprocess.PIPE)
    until(process, b"\n")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) in (-signal.SIGTERM, 128 + signal.SIGTERM)


def test_ignored_signals_stay_ignored(start) -> None:
    """As under `nohup`."""
    process = start(
        'print "first"', "print (forever 1.0)", stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    until(process, b"first\n")
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)


def test_much_output_is_whole(start) -> None:
    process = start("(loop _ = () for i < 30000 do print i)", stdout=subprocess.PIPE)
    assert process.communicate(timeout=PATIENCE)[0] == b"".join(b"%d\n" % i for i in range(30000))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk(start) -> None:
    with open("/dev/full", "wb") as full:
        process = start('print "x"', stdout=full, stderr=subprocess.PIPE)
        said = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == 1
    assert "cannot write standard output: No space left on device" in said
    assert start.kind == "library" or "Traceback" not in said
