"""Transcripts of debugger sessions.  A script `sessions/NAME.txt` names its program in its first line."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import ROOT

SCRIPTS = sorted((Path(__file__).parent / "sessions").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_session(dpl, golden, script: Path) -> None:
    program = script.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    run = dpl("debug", "--script", script.relative_to(ROOT), program)
    assert "Traceback" not in run.stderr and run.returncode in (0, 1), run.stderr
    golden(script.with_suffix(".out"), run.stdout + run.stderr)


def test_the_recording_shows_what_is_said_today(dpl, monkeypatch, tmp_path: Path) -> None:
    for needed in ("pexpect", "pyte"):
        pytest.importorskip(needed, reason="extra dev")
    folder = ROOT / "examples" / "session"
    monkeypatch.syspath_prepend(folder)
    import debugger

    film = "".join("".join(ElementTree.parse(folder / "debugger.svg").getroot().itertext()).split())
    script = tmp_path / "script.txt"
    script.write_text("".join(f"{typed}\n" for typed, *_ in debugger.SESSION), encoding="utf-8")
    said = dpl("debug", "--script", script, debugger.PROGRAM.name, cwd=folder).stdout.splitlines()
    assert len(said) > 15 and all("".join(line[:80].split()) in film for line in said)
