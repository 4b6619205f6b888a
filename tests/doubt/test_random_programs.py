"""Random programs: both engines print the same, and all roads to a derivative meet.

The quick run judges the programs of `corpus/`, which reach what many more reach, and some batches.  Where a program of
a batch fails, the smallest program that hypothesis found to fail in the same way is shown.  The long run takes an
hour: `pytest -m slow tests/doubt`, or `DOUBT=100000 pytest ...` for more; each time with other programs if
`DOUBT_SEED` is set to another number.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from doubt import corpus
from doubt.agreement import judge
from doubt.oracle import NATIVE, OPTIMISED, Oracle
from doubt.plain import PLAIN
from doubt.programs import Program, Size, programs
from doubt.roads import ROADS

BATCHES, QUICK, EACH, SMALL = 40, range(1), 50, Size(budget=14, depth=3, definitions=1)
LONG, LARGE = int(os.environ.get("DOUBT", "10000")), Size(budget=25, depth=4, definitions=2)
FIRST = int(os.environ.get("DOUBT_SEED", "1")) * 1_000_000
AGREED = 80  # percent of the programs, at least
SLOW, INTERPRETED = 2, 1  # at most


def small_engine(batch: int, program: Program) -> str:
    """About each fourth program of one batch in ten as LLVM optimises it, always the same ones: a failing program that
    shrinks is judged again."""
    return NATIVE if batch % 10 or len(program.text) % 4 else OPTIMISED


def large_engine(batch: int, program: Program) -> str:
    return NATIVE if batch % 4 else OPTIMISED


@cache
def oracle() -> Oracle:
    return Oracle()


def every(start: int, count: int, size: Size, check: Callable[[Program], object], *phases: Phase) -> None:
    """Draws that many programs, and checks each."""

    @seed(start)
    @settings(
        max_examples=count, database=None, deadline=None, backend=PLAIN, print_blob=False,
        phases=phases, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(size))
    def every_road_meets(program: Program) -> None:
        check(program)

    every_road_meets()


def drawn(batch: int) -> list[Program]:
    """The small programs of a batch."""
    found: list[Program] = []
    every(batch, EACH, SMALL, found.append, Phase.generate)
    return found


def judged(program: Program, engine: str) -> str:
    """What was found about it.  A failure shows the program."""
    try:
        return judge(program, oracle().ask, engine)
    except AssertionError as failure:
        failure.add_note(program.text)
        raise


def doubt(start: int, count: int, size: Size, engine: Callable[[int, Program], str]) -> Counter[str]:
    """Judges that many programs; how often each verdict was given."""
    verdicts: Counter[str] = Counter()
    every(start, count, size, lambda p: verdicts.update([judged(p, engine(start, p))]), Phase.generate, Phase.shrink)
    print(verdicts)
    return verdicts


def share(verdicts: Counter[str], verdict: str) -> float:
    """Percent of the programs."""
    return 100 * sum(n for name, n in verdicts.items() if name.startswith(verdict)) / verdicts.total()


@pytest.mark.parametrize("file", sorted(corpus.FOLDER.glob("*.dp")), ids=lambda file: file.stem)
def test_corpus(file: Path) -> None:
    for case in corpus.read(file):
        judged(case.program, case.engine)


@pytest.mark.parametrize(
    "batch", [batch if batch in QUICK else pytest.param(batch, marks=pytest.mark.slow) for batch in range(BATCHES)]
)
def test_programs(batch: int) -> None:
    verdicts = doubt(batch, EACH, SMALL, small_engine)
    assert share(verdicts, "agreed") >= AGREED and share(verdicts, "interpreted") <= INTERPRETED, verdicts


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(LONG // EACH))
def test_many_programs(batch: int) -> None:
    verdicts = doubt(FIRST + batch, EACH, LARGE, large_engine)
    assert share(verdicts, "slow") <= SLOW and share(verdicts, "interpreted") <= INTERPRETED, verdicts


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(4))
@pytest.mark.parametrize("road", ROADS)
def test_other_roads(road: str, batch: int) -> None:
    doubt(FIRST + batch, EACH, SMALL, lambda *_: road)
