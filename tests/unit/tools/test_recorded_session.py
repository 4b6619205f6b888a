"""The recorded session in `examples/session` shows what `dpl repl` says today."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from conftest import ROOT

FOLDER = ROOT / "examples" / "session"


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch):
    for needed in ("pexpect", "pyte"):
        pytest.importorskip(needed, reason="extra dev")
    monkeypatch.syspath_prepend(FOLDER)
    import record

    return record


def screen(record) -> list[str]:
    """What is on the screen at the end of the recording."""
    import pyte

    header, *events = (json.loads(line) for line in (FOLDER / "session.cast").read_text("utf-8").splitlines())
    assert header["version"] == 2 and all(kind == "o" for _, kind, _ in events)
    times = [at for at, _, _ in events]
    assert times == sorted(times) and times[-1] > 10
    shown = pyte.Screen(header["width"], header["height"])
    stream = pyte.Stream(shown)
    for _, _, text in events:
        stream.feed(text)
    return [line.rstrip() for line in shown.display]


def test_answers_are_those_of_today(record, dpl) -> None:
    typed = "".join(text for text, _ in record.SESSION if text != record.CTRL_C)
    typed = typed.replace("loop n = 0 while true do n + 1\r", "").replace("Plot.gr\t", "Plot.graph")
    run = dpl("repl", stdin=typed.replace(record.MORE, "\n  ").replace(record.ENTER, "\n"))
    shown = screen(record)
    answers = [line.rstrip() for line in (run.stdout + run.stderr).splitlines()]
    assert len(answers) > 35 and [line for line in answers if line not in shown] == []
    assert "interrupted" in shown


def test_pictures_are_xml() -> None:
    for name in ("session", "completion"):
        root = ElementTree.parse(FOLDER / f"{name}.svg").getroot()
        words = " ".join(text.text or "" for text in root.iter() if text.tag.endswith("text"))
        assert "DPL" in words and ("interrupted" in words) == (name == "session")
