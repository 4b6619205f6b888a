"""Executables under the thread sanitizer: the points of a loop share nothing that is written.

    pip install ziglang; pytest -m slow tests/outside/test_thread_sanitizer.py

Zig compiles the LLVM text, as `cc` cannot and our LLVM has no pass for it.  Its runtime is built once, which takes
minutes.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.syntax.load import read
from dplc.machine.emit.module.memory import SINK
from dplc.machine.entry.executable import executable_text
from dplc.machine.llvm.target import to_build
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

PROGRAMS = [*sorted((ROOT / "tests" / "outside" / "raced").glob("*.dp")), ROOT / "tests/agree/programs/threads.dp"]
FUNCTION = re.compile(r"(?m)^(define (?!.*naked)[^\n]*?)( !dbg ![0-9]+)? \{$")
BLOCK = re.compile(r'define [^\n]*@"block of [^\n]*\{\n\w+:\n')
ENVIRONMENT = {"DPL_THREADS": "4", "DPL_BLOCK": "1"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed"),
]


def text_of(file: Path) -> str:
    """The text of an executable whose functions are to be instrumented, with every loop spread over threads."""
    program = on_large_stack(lambda: compile_to("reference_counts", read(file), Context())[1])
    text, _ = executable_text(program, to_build(None, None))
    return FUNCTION.sub(r"\1 sanitize_thread\2 {", text)


def told(text: str, folder: Path) -> str:
    """What the sanitizer says about the program with this text."""
    (folder / "program.ll").write_text(text)
    flags = ["-O1", "-fsanitize=thread", "-g0", "-Wno-override-module", "-lm", "-lpthread"]
    subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", *flags, "program.ll", "-o", "program"],
        cwd=folder, check=True, timeout=1200,
    )  # fmt: skip
    environment = {**os.environ, **ENVIRONMENT}
    made = subprocess.run(["./program"], cwd=folder, env=environment, capture_output=True, timeout=300)
    return made.stderr.decode()


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda p: p.stem)
def test_no_races(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Path) -> None:
    monkeypatch.setenv("DPL_BLOCK", "1")
    assert told(text_of(file), tmp_path) == ""


def test_a_race_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Points that count in a place that all threads share."""
    monkeypatch.setenv("DPL_BLOCK", "1")
    count = f"  %old = load volatile i64, ptr {SINK}\n  %new = add i64 %old, 1\n  store volatile i64 %new, ptr {SINK}\n"
    text, places = BLOCK.subn(lambda head: head[0] + count, text_of(PROGRAMS[0]))
    assert places and SINK in text
    assert "WARNING: ThreadSanitizer: data race" in told(text, tmp_path)
