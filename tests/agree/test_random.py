"""Random programs: both engines print the same, and all roads to a derivative meet.

A failure names its seed; `python tests/agree/generate.py SEED [DEPTH]` prints the program.
"""

from __future__ import annotations

from math import isfinite
from random import Random

import pytest
from conftest import NUMBER
from engines import REJECTED, both, warm_up
from generate import Writer
from test_gradients import MEASURE, close

BATCHES, SIZE = 6, 10
LONG = 3000


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warm_up()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_programs(batch: int) -> None:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        try_one(seed)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES, LONG // SIZE))
def test_many_programs(batch: int) -> None:
    for seed in range(batch * SIZE, (batch + 1) * SIZE):
        try_one(seed, depth=5, bare=seed % 2 == 0)


def try_one(seed: int, depth: int = 4, bare: bool = False) -> None:
    """With `bare` parameters inference may rightly find a program too vague."""
    writer = Writer(Random(seed), bare=bare)
    text = writer.program(depth) + MEASURE
    outcomes = both(text)
    interp, native = outcomes["interp"], outcomes["native"]
    where = f"seed {seed}, depth {depth}\n{text}\ninterp: {interp}\nnative: {native}"
    if bare and interp.failure.startswith(REJECTED):
        return
    assert not interp.crashed and not native.crashed, where
    assert interp.failure == native.failure, where
    assert same(interp.output, native.output), where
    if not interp.failure:
        assert roads_meet(measured(native.output), smooth=not writer.special), where


def measured(output: str) -> list[float]:
    """The last lines, without those that f printed."""
    lines = [line for line in output.splitlines() if not line.startswith('("~"')]
    return [float(line) for line in lines[-8:]]


def same(a: str, b: str) -> bool:
    """Equal texts, except that numbers may differ by a little."""
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)), strict=True)
    return all(x == y or (x != x and y != y) or close(x, y, 1e-7) for x, y in pairs)


def roads_meet(numbers: list[float], smooth: bool) -> bool:
    """Whether forward, reverse and nested derivatives agree, and finite differences with them if f is smooth there."""
    forward, reverse, slope, *second, curvature = numbers
    if not all(map(isfinite, numbers)):
        return True
    exact = close(forward, reverse, 1e-8) and all(close(road, second[0], 1e-7) for road in second)
    return exact and (not smooth or (close(forward, slope, 1e-4) and close(second[0], curvature, 1e-3)))
