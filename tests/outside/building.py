"""What the tests of `dpl build` share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler `cc`")


def written(folder: Path, text: str, name: str = "model.dp") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def done(command: list[str | Path], cwd: Path, code: int = 0, **more) -> subprocess.CompletedProcess[str]:
    """Runs a program without anything of ours, nor of Python, in its environment."""
    run = subprocess.run(
        [str(word) for word in command], cwd=cwd, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True, encoding="utf-8", timeout=120, check=False, **more,
    )  # fmt: skip
    assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
    return run


def failed(run, code: int, *words: str) -> None:
    """A command that ended with one clear message."""
    assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
    assert "Traceback" not in run.stderr and "internal error" not in run.stderr
    for word in words:
        assert word in run.stderr, run.stderr
