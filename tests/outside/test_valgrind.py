"""Executables under valgrind: nothing is read or written that is not theirs, and what ends by itself gives back all.

    pytest -m slow tests/outside/test_valgrind.py

Each program in `checked/` does as the interpreter does, failures included; a program more is a file more there.
"""

from __future__ import annotations

import shutil

import pytest
from building import done, needs_cc
from conftest import ROOT, assert_same_output

PROGRAMS = [
    *sorted((ROOT / "tests" / "outside" / "checked").glob("*.dp")),
    *sorted((ROOT / "tests" / "agree" / "programs").glob("rowless*.dp")),
]
VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--log-file=told"]
LEAKS = ["--leak-check=full", "--errors-for-leak-kinds=definite"]

pytestmark = [
    pytest.mark.slow,
    needs_cc,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind"),
]


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda p: p.stem)
def test_memory(dpl, tmp_path, file) -> None:
    """A program that fails leaves what it has made to the system."""
    made = dpl("build", file, "-o", tmp_path / "program", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    meant = dpl("run", "--engine", "interp", file, "ä", cwd=tmp_path)
    command = [*VALGRIND, *([] if meant.returncode else LEAKS), "./program", "ä"]
    got = done(command, tmp_path, code=meant.returncode)
    assert (tmp_path / "told").read_text() == ""
    assert_same_output(got.stdout, meant.stdout)
    assert got.stderr.partition("\n")[0] == meant.stderr.partition("\n")[0]
