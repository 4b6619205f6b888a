"""Transcripts of debugger sessions.  A script `sessions/NAME.txt` names its program in its first line."""

from pathlib import Path

import pytest
from conftest import ROOT

SCRIPTS = sorted((Path(__file__).parent / "sessions").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_session(dpl, golden, script: Path) -> None:
    program = script.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    run = dpl("debug", "--script", script.relative_to(ROOT), program)
    assert "Traceback" not in run.stderr and run.returncode in (0, 1), run.stderr
    golden(script.with_suffix(".out"), run.stdout + run.stderr)
