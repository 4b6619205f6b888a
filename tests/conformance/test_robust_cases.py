"""Facts about robustness that need more than a program's text, by the names of the cases they were translated from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

BOTH = pytest.mark.parametrize("engine", ["interp", "native"])

# what the file holds, what is printed, what is said if it is rejected
SOURCES = [
    ("invalid UTF-8", b'do print "a\xff\xfe"\n', "", "UTF-8"),
    ("invalid UTF-8 in a comment", b"-- \xc3\x28\ndo print 1\n", "", "UTF-8"),
    ("NUL", b"do print 1\n\x00\ndo print 2\n", "", "zero bytes"),
    ("UTF-16", "do print 1\n".encode("utf-16"), "", "it is UTF-16"),
    ("NUL in a string", b'do print (String.length "a\x00b")\n', "", "zero bytes"),
    ("CRLF", b"do print 1\r\nlet x =\r\n  2\r\ndo print x\r\n", "1\n2\n", ""),
    ("no final newline", b"do print 1", "1\n", ""),
    ("a comment without an end of line", b"do print 1 -- one", "1\n", ""),
    ("BOM", b"\xef\xbb\xbfdo print 1\n", "1\n", ""),
    ("nothing but a BOM", b"\xef\xbb\xbf", "", ""),
]


@pytest.mark.parametrize(("content", "printed", "said"), [s[1:] for s in SOURCES], ids=[s[0] for s in SOURCES])
def test_sources(dpl, tmp_path, content: bytes, printed: str, said: str) -> None:  # ROB-20
    file = tmp_path / "it.dp"
    file.write_bytes(content)
    run = dpl("run", file)
    assert (run.returncode, run.stdout) == (1 if said else 0, printed), run.stderr
    assert said in run.stderr if said else not run.stderr


@BOTH
def test_parentheses(dpl, tmp_path, engine: str) -> None:  # ROB-10
    file = tmp_path / "it.dp"
    file.write_text(f"do print {'(' * 10_000}1{')' * 10_000}\n", encoding="utf-8")
    run = dpl("run", "--engine", engine, file)
    assert run.stdout == "1\n", run.stderr[-500:]


def peak(file: Path, cache: Path, engine: str, calls: int) -> int:
    """KiB of memory in use at most."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lang'}:{ROOT / 'compiler'}", "DPL_CACHE": str(cache)}
    command = [sys.executable, "-m", "dplc.cli", "run", "--engine", engine, str(file), str(calls)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


@BOTH
def test_tail_calls_take_no_memory(tmp_path, cache, engine: str) -> None:  # ROB-39
    file = tmp_path / "it.dp"
    file.write_text(
        "let rec f x = if x = 0 then 0 else f (x - 1)\n"
        "let calls = match List.map String.to_int Sys.args with [Some n;] -> n | _ -> 0\n"
        "do print (f calls)\n",
        encoding="utf-8",
    )
    peak(file, cache, engine, 10)  # compiled once
    few, many = (peak(file, cache, engine, calls) for calls in (10, 500_000))
    assert many - few < 8192, f"{many - few} KiB for half a million calls"
