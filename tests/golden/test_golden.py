"""Transcripts: what each stage makes of small programs, and what is said of wrong ones.

`STAGE/NAME.dp` stands beside `STAGE/NAME.out`, the dump after that stage; `pytest --bless` rewrites transcripts.  Read
the difference before you bless it.
"""

from pathlib import Path

import pytest
from conftest import ROOT
from dplc.pipeline import NAMES

HERE = Path(__file__).parent
STAGES = [p for stage in NAMES for p in sorted((HERE / stage).glob("*.dp"))]
ERRORS = [p for kind in ("syntax_errors", "type_errors") for p in sorted((HERE / kind).glob("*.dp"))]
FAILURES = sorted((HERE / "run_errors").glob("*.dp"))


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


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


@pytest.mark.parametrize("program", FAILURES, ids=name)
@pytest.mark.parametrize("engine", ["interp", "native"])
def test_fails(dpl, golden, program: Path, engine: str) -> None:
    run = dpl("run", "--engine", engine, program.relative_to(ROOT))
    assert run.returncode == 1
    golden(program.with_suffix(f".{engine}.out"), run.stdout + run.stderr)
