"""Every example prints what stands in `NAME.out`; char_rnn learns."""

import re
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

HERE = Path(__file__).parent
EXPECTED = sorted(HERE.glob("*.out"))


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda p: p.stem)
def test_example(dpl, expected: Path) -> None:
    run = dpl("run", ROOT / "examples" / f"{expected.stem}.dp")
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, expected.read_text(encoding="utf-8"))


def test_every_numbered_example_is_tested() -> None:
    numbered = {p.stem for p in (ROOT / "examples").glob("[0-9]*.dp")}
    assert numbered <= {p.stem for p in EXPECTED}


def test_char_rnn_learns(dpl) -> None:
    run = dpl("run", ROOT / "examples" / "char_rnn.dp", ROOT / "stdlib" / "prelude.dp", "301")
    assert run.returncode == 0, run.stderr
    losses = [float(x) for x in re.findall(r"^iteration \d+, loss (\S+)$", run.stdout, re.MULTILINE)]
    assert len(losses) == 4
    assert losses == sorted(losses, reverse=True)
