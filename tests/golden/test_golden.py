"""Transcripts: what each stage makes of small programs, and what is said of wrong ones.

`STAGE/NAME.dp` stands beside `STAGE/NAME.out`, the dump after that stage; `pytest --bless` rewrites transcripts.  Read
the difference before you bless it.  A program may begin with `-- dump OPTIONS`, as `--fn NAME`.  LLVM text is that for
the machine at hand: its transcripts are of x86-64 Linux.
"""

import platform
import shlex
from pathlib import Path

import pytest
from conftest import ROOT
from dplc.pipeline import NAMES, SIDE_NAMES

HERE = Path(__file__).parent


def programs(kind: Path) -> list[Path]:
    """A program is a file, or a folder with a `main.dp` and what that imports."""
    return sorted([*kind.glob("*.dp"), *kind.glob("*/main.dp")])


STAGES = [p for stage in (*NAMES, *SIDE_NAMES) for p in sorted((HERE / stage).glob("*.dp"))]
ERRORS = [p for kind in sorted(HERE.glob("*_errors")) if kind.name != "run_errors" for p in programs(kind)]
WARNINGS = sorted((HERE / "warnings").glob("*.dp"))
FAILURES = sorted((HERE / "run_errors").glob("*.dp"))


def name(path: Path) -> str:
    return "-".join(path.relative_to(HERE).with_suffix("").parts)


@pytest.mark.parametrize("program", STAGES, ids=name)
def test_stage(dpl, golden, program: Path) -> None:
    stage = program.parent.name
    if stage == "llvm" and (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("the transcript is of another machine")
    first = program.read_text(encoding="utf-8").partition("\n")[0]
    options = shlex.split(first.removeprefix("-- dump ")) if first.startswith("-- dump ") else []
    run = dpl("dump", stage, program.relative_to(ROOT), *options)
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
