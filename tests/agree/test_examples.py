"""The examples print what is expected of them (`examples/NAME.out`), by both engines."""

from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

EXPECTED = sorted((Path(__file__).parent / "examples").glob("*.out"))
LONG = ("05_iris_mlp", "06_tree_model")  # ten seconds and more in the interpreter


def both(expected: Path):
    yield pytest.param(expected, "native", id=f"{expected.stem}-native")
    marks = [pytest.mark.slow] if expected.stem in LONG else []
    yield pytest.param(expected, "interp", id=f"{expected.stem}-interp", marks=marks)


@pytest.mark.parametrize(("expected", "engine"), [case for path in EXPECTED for case in both(path)])
def test_example(dpl, expected: Path, engine: str) -> None:
    run = dpl("run", "--engine", engine, f"examples/{expected.stem}.dp")
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, expected.read_text(encoding="utf-8"), rel=1e-6)


def test_none_is_left_out() -> None:
    known = {path.stem for path in EXPECTED} | {"char_rnn"}
    assert {path.stem for path in (ROOT / "examples").glob("*.dp")} == known


def test_char_rnn(dpl) -> None:
    run = dpl("run", "examples/char_rnn.dp", "stdlib/list.dp", "200")
    assert run.returncode == 0, run.stderr
    losses = [float(line.split("loss")[1].split()[0].strip(",")) for line in run.stdout.splitlines() if "loss" in line]
    assert losses[-1] < losses[0]
