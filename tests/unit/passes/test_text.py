"""Single passes: a program as text, the pass, and CHECK lines on what comes out.

`text/NAME.flat` begins with the stage and what it should do; `filecheck` compares (https://llvm.org's FileCheck, in
Python).  Lines that begin with a semicolon are comments.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from dpl.source import Source
from dplc.flat.parse import parse
from dplc.flat.verify import verify
from dplc.pipeline import READABLE, Context, stage_of

filecheck = pytest.importorskip("filecheck.matcher", reason="extra dev")
CASES = sorted((Path(__file__).parent / "text").glob("*.flat"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_pass(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from filecheck.finput import FInput
    from filecheck.options import Options
    from filecheck.parser import Parser

    text = path.read_text(encoding="utf-8")
    stage = stage_of(text[2 : text.index(":")])
    device = stage.name in ("sweeps", "place") or path.stem.endswith("on_device")  # some have nothing to do without one
    context = Context(device=device)
    made = stage.run(verify(parse(Source(path.name, text))), context)
    stage.verify(made)
    options = Options(str(path))
    wrong = filecheck.Matcher(options, FInput(stage.name, stage.show(made)), Parser.from_opts(options)).run()
    assert not wrong, capsys.readouterr().err + stage.show(made)


def test_every_pass_on_flat_has_cases() -> None:
    """The first stage makes flat of something else."""
    assert {path.stem.partition("-")[0] for path in CASES} == set(READABLE[1:])
