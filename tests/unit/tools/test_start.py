"""What a program from the cache and `dpl --version` import: little, so that they start at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from dplc.machine.run.cache import _place

HEAVY = (
    "llvmlite", "numpy", "lark", "click", "pickle", "typing", "dataclasses", "pathlib", "inspect", "hashlib",
    "json", "re", "tempfile", "subprocess", "dpl.diagnostics", "dpl.source", "dpl.syntax", "dpl.types", "dplc.pipeline",
    "dplc.commands", "dplc.machine.llvm.target", "dplc.machine.object.link",
)  # fmt: skip
OF_ERRORS = (
    "dpl.types.state.unbound", "dpl.types.messages.axes", "dpl.types.warnings.kinks", "dpl.syntax.formatter.shape",
)  # fmt: skip
WITHOUT = """
import sys
before = set(sys.modules)  # an installation may import some of them for each Python
from dplc.cli import main
try:
    main()
finally:
    print(sorted(set({heavy}) & (set(sys.modules) - before)), file=sys.stderr)
"""


def without_heavy_modules(*words: str, heavy: tuple[str, ...] = HEAVY, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a new process, which says at last what it has imported of the heavy modules."""
    return python(WITHOUT.format(heavy=heavy), *words, **env)


def python(program: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("lang", "compiler"))
    return subprocess.run(
        [sys.executable, "-c", program, *words], timeout=60, check=False, capture_output=True,
        encoding="utf-8", env={**os.environ, "PYTHONPATH": paths, **env},
    )  # fmt: skip


def test_a_program_from_the_cache(dpl, cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "hello.dp"
    file.write_text("do print (Sys.args, sin 0.0)\n")
    assert dpl("run", file).stdout == "([], 0.0)\n"
    run = without_heavy_modules("run", str(file), "a", DPL_CACHE=str(cache))
    assert (run.stdout, run.stderr) == ('(["a";], 0.0)\n', "[]\n")


def test_a_new_program_without_errors(tmp_path: Path) -> None:
    file = tmp_path / "new.dp"
    file.write_text("do print 1\n")
    python(WITHOUT.format(heavy=()), "run", str(file), DPL_CHECK="0")  # checks the library, if none has
    file.write_text("let f (x : float) = 2.0 * x\ndo print (f 1.5, [1.0, 2.0])\n")
    run = without_heavy_modules("run", str(file), heavy=OF_ERRORS, DPL_CHECK="0")
    assert (run.stdout, run.stderr) == ("(3.0, [1.0, 2.0])\n", "[]\n")


def test_the_version() -> None:
    run = without_heavy_modules("--version")
    assert run.stdout.startswith("dpl 0.") and run.stderr == "[]\n"


SEARCHES = """
import gc, sys
from dplc.cli import main
before = sum(row["collections"] for row in gc.get_stats())
try:
    main()
finally:
    print(sum(row["collections"] for row in gc.get_stats()) - before, file=sys.stderr)
"""


def test_no_garbage_is_looked_for_while_modules_are_imported(tmp_path: Path) -> None:
    (tmp_path / "hello.dp").write_text("do print 1\n")
    for words in (["--version"], ["run", str(tmp_path / "hello.dp")]):
        run = python(SEARCHES, *words, DPL_CHECK="0")
        assert run.stderr == "0\n"


def test_options_that_change_nothing_find_it_too(dpl, tmp_path: Path) -> None:
    """And the times of a cached run are its own."""
    file = tmp_path / "hello.dp"
    file.write_text("do print 1\n")
    assert "object" in dpl("run", "--timings", file).stderr
    run = dpl("run", "-O", "2", "--engine", "native", "--timings", file, DPL_CHECK="0")
    assert run.stdout == "1\n" and [line.split()[0] for line in run.stderr.splitlines()] == ["find", "load", "total"]
    for other in (["-O1"], ["--no-cache"]):
        assert "object" in dpl("run", *other, "--timings", file, DPL_CHECK="0").stderr


def test_a_damaged_file_is_made_again(dpl, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPL_CACHE", str(cache))
    file = tmp_path / "hello.dp"
    file.write_text("do print 2\n")
    assert dpl("run", file).stdout == "2\n"
    entry = Path(_place(str(file), file.read_bytes()))
    whole = entry.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:5000] + b"\xcc" * 100 + whole[5100:]):
        entry.write_bytes(damaged)
        run = dpl("run", file)
        assert (run.returncode, run.stdout, run.stderr) == (0, "2\n", "")
        assert entry.read_bytes() == whole


INTERRUPTED = """
import os, signal, sys
class Importing:
    def find_spec(self, name, *_):
        if name == "dplc.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Importing())
import dplc.command
"""


def test_ctrl_c_before_the_command_is_imported_shows_no_traceback() -> None:
    run = python(INTERRUPTED)
    assert (run.returncode, run.stdout, run.stderr) == (-signal.SIGINT, "", "")
