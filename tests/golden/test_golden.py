"""Transcripts: what each stage makes of small programs, and what is said of wrong ones.

`STAGE/NAME.dp` stands beside `STAGE/NAME.out`, the dump after that stage; `pytest --bless` rewrites transcripts.  Read
the difference before you bless it.
"""

from pathlib import Path

import pytest
from conftest import ROOT
from dplc.pipeline import NAMES

HERE = Path(__file__).parent


def programs(kind: Path) -> list[Path]:
    """A program is a file, or a folder with a `main.dp` and what that imports."""
    return sorted([*kind.glob("*.dp"), *kind.glob("*/main.dp")])


STAGES = [p for stage in NAMES for p in sorted((HERE / stage).glob("*.dp"))]
ERRORS = [p for kind in sorted(HERE.glob("*_errors")) if kind.name != "run_errors" for p in programs(kind)]
WARNINGS = sorted((HERE / "warnings").glob("*.dp"))
FAILURES = sorted((HERE / "run_errors").glob("*.dp"))


def name(path: Path) -> str:
    return "-".join(path.relative_to(HERE).with_suffix("").parts)


@pytest.mark.parametrize("program", STAGES, ids=name)
def test_stage(dpl, golden, program: Path) -> None:
    run = dpl("dump", program.parent.name, program.relative_to(ROOT))
    assert run.returncode == 0, run.stderr
    golden(program.with_suffix(".out"), run.stdout)


@pytest.mark.parametrize("program", ERRORS, ids=name)
def test_rejected(dpl, golden, program: Path) -> None:
    run = dpl("check", program.relative_to(ROOT))
    assert run.returncode == 1 and not run.stdout
    golden(program.with_suffix(".out"), run.stderr)


@pytest.mark.parametrize("program", WARNINGS, ids=name)
def test_warned(dpl, golden, program: Path) -> None:
    run = dpl("check", program.relative_to(ROOT))
    assert run.returncode == 0 and not run.stdout
    golden(program.with_suffix(".out"), run.stderr)


@pytest.mark.parametrize("program", FAILURES, ids=name)
@pytest.mark.parametrize("engine", ["interp", "native"])
def test_fails(dpl, golden, program: Path, engine: str) -> None:
    run = dpl("run", "--engine", engine, program.relative_to(ROOT))
    assert run.returncode == 1
    own = program.with_suffix(
        f".{engine}.out"
    )  # where the engines cannot say the same, as of how deep a recursion went
    golden(own if own.exists() else program.with_suffix(".out"), run.stdout + run.stderr)
