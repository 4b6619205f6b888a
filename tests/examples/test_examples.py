"""Every example prints what stands in `NAME.out`, by both engines; char_rnn learns."""

import re
from pathlib import Path

import pytest
from conftest import ROOT, assert_same_output

HERE = Path(__file__).parent
EXPECTED = sorted(HERE.glob("*.out"))


LONG = ("05_iris_mlp", "06_tree_model")  # ten seconds and more in the interpreter
RUNS = [(path, engine) for path in EXPECTED for engine in ("native", "interp")]


def run_of(expected: Path, engine: str):
    marks = [pytest.mark.slow] if engine == "interp" and expected.stem in LONG else []
    return pytest.param(expected, engine, id=f"{expected.stem}-{engine}", marks=marks)


@pytest.mark.parametrize(("expected", "engine"), [run_of(*run) for run in RUNS])
def test_example(dpl, expected: Path, engine: str) -> None:
    run = dpl("run", "--engine", engine, ROOT / "examples" / f"{expected.stem}.dp")
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


def test_eight_schools_has_the_published_posterior(dpl) -> None:
    run = dpl("run", ROOT / "examples" / "eight_schools.dp", "300")
    assert run.returncode == 0, run.stderr
    rows = {row[:8].strip(): [float(x) for x in row[8:].split()] for row in run.stdout.splitlines()[1:11]}
    for name, mean, sd in (("mu", 4.4, 3.3), ("tau", 3.6, 3.2), ("theta 1", 6.2, 5.6), ("theta 7", 6.3, 5.0)):
        got, spread, *_, effective, _, rhat = rows[name]
        assert abs(got - mean) < 5 * sd / effective**0.5, name
        assert abs(spread - sd) < 0.3 * sd, name
        assert rhat < 1.03, name
