"""The house in order: layers point one way, the linter and the type checker are content."""

import subprocess
import sys

from conftest import ROOT


def clean(*command: str) -> None:
    run = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_layers() -> None:
    code = "import sys; sys.path[:0] = ['lang', 'compiler']; from importlinter.cli import lint_imports_command; lint_imports_command()"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


def test_ruff() -> None:
    clean("ruff", "check", "lang", "compiler", "tests", "benchmarks")


def test_pyright() -> None:
    clean("pyright")
