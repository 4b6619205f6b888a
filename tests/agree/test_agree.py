"""Every program, by both engines: the same output, which is the expected one (`NAME.out` beside `NAME.dp`)."""

from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

HERE = Path(__file__).parent
PROGRAMS = [p for folder in ("cases", "programs") for p in sorted((HERE / folder).glob("*.dp"))]


@pytest.mark.parametrize("engine", ["interp", "native"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_output(dpl, program: Path, engine: str) -> None:
    expected = program.with_suffix(".out").read_text(encoding="utf-8")
    run = dpl("run", "--engine", engine, program.relative_to(ROOT))
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, expected)
