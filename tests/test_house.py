"""The house in order: layers point one way, the linter and the type checker are content."""

import os
import subprocess
import sys

from conftest import ROOT


def clean(*command: str, **environment: str) -> None:
    env = {**os.environ, **environment}
    run = subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr


def test_layers() -> None:
    sources = os.pathsep.join(("lang", "compiler"))
    clean("-c", "from importlinter.cli import lint_imports_command as lint; lint()", PYTHONPATH=sources)


def test_ruff() -> None:
    clean("-m", "ruff", "check", "lang", "compiler", "tests", "benchmarks", "examples", "docs")


def test_pyright() -> None:
    clean("-m", "pyright", "--pythonpath", sys.executable)
