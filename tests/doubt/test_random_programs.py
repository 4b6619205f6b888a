"""Random programs: both engines print the same, and all roads to a derivative meet.

A failure shows the smallest program that hypothesis found to fail in the same way.  The long run takes an hour:
`pytest -m slow tests/doubt`, or `DOUBT=100000 pytest ...` for more; each time with other programs if `DOUBT_SEED` is
set to another number.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache, partial

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from doubt.agreement import judge
from doubt.oracle import NATIVE, OPTIMISED, Oracle
from doubt.plain import PLAIN
from doubt.programs import Program, Size, programs

BATCHES, EACH, SMALL = 20, 100, Size(budget=14, depth=3, definitions=1)
LONG, LARGE = int(os.environ.get("DOUBT", "10000")), Size(budget=25, depth=4, definitions=2)
FIRST = int(os.environ.get("DOUBT_SEED", "1")) * 1_000_000
AGREED = 80  # percent of the programs, at least
SLOW, INTERPRETED = 2, 1  # at most


@cache
def oracle() -> Oracle:
    return Oracle()


def doubt(start: int, count: int, size: Size, engine: str) -> Counter[str]:
    """Judges that many programs; how often each verdict was given."""
    verdicts: Counter[str] = Counter()
    found = partial(judge, ask=oracle().ask, engine=engine)

    @seed(start)
    @settings(
        max_examples=count, database=None, deadline=None, backend=PLAIN, print_blob=False,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs(size))
    def every_road_meets(program: Program) -> None:
        try:
            verdicts[found(program)] += 1
        except AssertionError as failure:
            failure.add_note(program.text)
            raise

    every_road_meets()
    print(verdicts)
    return verdicts


def share(verdicts: Counter[str], verdict: str) -> float:
    """Percent of the programs."""
    return 100 * sum(n for name, n in verdicts.items() if name.startswith(verdict)) / verdicts.total()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs(batch: int) -> None:
    """One batch of ten as LLVM optimises it."""
    verdicts = doubt(batch, EACH, SMALL, NATIVE if batch % 10 else OPTIMISED)
    assert share(verdicts, "agreed") >= AGREED and share(verdicts, "interpreted") <= INTERPRETED, verdicts


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(LONG // EACH))
def test_many_programs(batch: int) -> None:
    verdicts = doubt(FIRST + batch, EACH, LARGE, NATIVE if batch % 4 else OPTIMISED)
    assert share(verdicts, "slow") <= SLOW and share(verdicts, "interpreted") <= INTERPRETED, verdicts
