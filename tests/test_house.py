"""The house in order: layers point one way, the linter and the type checker are content, files are short."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

MOST_LINES = 500


def clean(*command: str, **environment: str) -> None:
    env = {**os.environ, **environment}
    run = subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_layers() -> None:
    sources = os.pathsep.join(("lang", "compiler"))
    clean("-c", "from importlinter.cli import lint_imports_command as lint; lint()", PYTHONPATH=sources)


SOURCES = ("lang", "compiler", "tests", "benchmarks", "examples", "docs")


def test_ruff() -> None:
    clean("-m", "ruff", "check", *SOURCES)
    clean("-m", "ruff", "format", "--check", *SOURCES)


def test_types() -> None:
    clean("-m", "pyrefly", "check", "--python-interpreter-path", sys.executable)


@pytest.mark.parametrize("kind", ["py", "rt", "dp", "lark"])
def test_files_are_short(kind: str) -> None:
    files = [path for folder in ("lang", "grammar", "stdlib", "compiler", "tests", "benchmarks", "examples")
             for path in (ROOT / folder).rglob(f"*.{kind}")]  # fmt: skip
    assert files
    assert not [str(path.relative_to(ROOT)) for path in files if lines(path) >= MOST_LINES]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_regular_expressions_wait_for_their_first_use() -> None:
    """What a compilation imports compiles none when it is imported (`dpl/regex.py`)."""
    files = [path for folder in ("lang/dpl", "compiler/dplc") for path in (ROOT / folder).rglob("*.py")]
    others = ("tools", "manual", "embed", "highlight.py")  # of which a run needs none
    asked = [path for path in files if not {*path.relative_to(ROOT).parts} & {*others}]
    early = [path for path in asked if re.search(r"(?m)^\w+(?:: [^=\n]+)? = re\.compile\(", path.read_text("utf-8"))]
    assert len(asked) > 500 and not early
