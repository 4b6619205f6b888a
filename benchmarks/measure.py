"""Runs a benchmark in NumPy: as measure.dp and measure.h do, with the same inputs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Mode = tuple[Callable[[int, int], Any], Callable[[Any], Any], Callable[[Any], list[float]]]


def run(modes: dict[str, Mode]) -> None:
    """Of a mode: what makes inputs, what is timed, what tells of its result."""
    mode, size, repeats = sys.argv[1:]
    make, compute, tell = modes[mode]
    for i in range(int(repeats)):
        inputs = make(int(size), i)
        start, clock = time.process_time(), time.perf_counter()
        result = compute(inputs)
        taken = (time.process_time() - start, time.perf_counter() - clock)
        print(*taken, *map(float, tell(result)))


def uniform(seed: int, i: np.ndarray) -> np.ndarray:
    start = _mix((1000003 * i + 7919 * seed + 12345) % 2147483647)
    return 4.656612875245797e-10 * _mix((48271 * start + i) % 2147483647)


def _mix(h: np.ndarray) -> np.ndarray:
    return h * h % 2147483647


def bell(seed: int, i: np.ndarray) -> np.ndarray:
    return 2.0 * (uniform(seed, 3 * i) + uniform(seed, 3 * i + 1) + uniform(seed, 3 * i + 2)) - 3.0


def digest(xs: np.ndarray) -> list[float]:
    xs = xs.astype(float)
    return [float(np.sum(xs * (1.0 + np.arange(len(xs)) % 7))), float(np.sum(xs * xs))]
