"""`dpl bench`: measures the time of functions and their gradients in native code.

After a first call to warm up, a function is repeated so that a sample takes a millisecond.  The result is the median of
the samples, with its confidence interval of at least 95 %.  If no size is given, several sizes are measured, and the
result is that of the largest size within the time limit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from dpl.node import node
from dpl.source import Source

from dplc.machine.object.compiled import Compiled
from dplc.stack import on_large_stack
from dplc.tools.bench.cases import Case
from dplc.tools.bench.driver import SAMPLES, TIME, subjects
from dplc.tools.bench.measure import Measured, measure

SIZES, SQUARES = (10, 100, 1000), (4, 16, 64)  # the largest within the limit is reported
OUTSIDE = 3  # the interval leaves out so many of 15 sorted samples at each end: binomial, 96.5 %


@node
class Times:
    """Seconds: the median and the bounds of its confidence interval."""

    median: float
    low: float
    high: float


@node
class Timed:
    """The times of a function and of its gradient at a size.  `compiling` is the time to compile its module with all
    measured functions; `why` says why no larger size was measured."""

    name: str
    size: int
    value: Times
    gradient: Times
    compiling: float
    why: str

    @property
    def ratio(self) -> float:
        return self.gradient.median / self.value.median if self.value.median else float("nan")


def times(target: str, names: Sequence[str], size: int | None, limit: float) -> Iterator[Timed | Measured]:
    """The times of the cases, or the reasons why they cannot be measured."""
    spent = 0.0

    def compiled(source: Source) -> Compiled:
        from dplc.pipeline import Context, compile_to

        nonlocal spent
        start = time.perf_counter()
        code = compile_to("object", source, Context())[1]
        spent = time.perf_counter() - start
        return code

    def at(case: Case) -> Sequence[int]:
        return (size,) if size else SQUARES if case.width > 1 else SIZES

    for subject in subjects(target, names):
        for measured in measure(subject, TIME, compiled, at, limit):
            yield timed(measured, spent)


def timed(measured: Measured, spent: float) -> Timed | Measured:
    """The times at the largest size with a full set of samples; `measured` itself if there is none."""
    whole = len(measured.rows) // SAMPLES * SAMPLES
    if not whole:
        return measured
    rows = measured.rows[whole - SAMPLES : whole]
    values, gradients = (sorted(row[k] for row in rows) for k in (1, 2))
    return Timed(measured.name, int(rows[0][0]), middle(values), middle(gradients), spent, measured.why)


def middle(samples: Sequence[float]) -> Times:
    assert len(samples) == SAMPLES
    return Times(samples[SAMPLES // 2], samples[OUTSIDE], samples[-1 - OUTSIDE])


# ---- output


def tell_times(target: str, names: Sequence[str], size: int | None, limit: float, as_json: bool) -> int:
    """Prints a line for each function that is measured, as a table or as objects of JSON."""
    found = on_large_stack(lambda: list(times(target, names, size, limit)))
    for line in map(as_object, found) if as_json else table(found):
        print(line)
    return 0


def as_object(one: Timed | Measured) -> str:
    if isinstance(one, Measured):
        return json.dumps({"name": one.name, "skipped": one.why})
    seconds = {
        key: {"median": t.median, "low": t.low, "high": t.high}
        for key, t in (("value", one.value), ("gradient", one.gradient))
    }
    limited = {"limited": one.why} if one.why else {}
    return json.dumps({"name": one.name, "size": one.size, "compiling": round(one.compiling, 3), **seconds, **limited})


def table(found: Sequence[Timed | Measured]) -> list[str]:
    done = [one for one in found if isinstance(one, Timed)]
    width = max([len(one.name) for one in done], default=0)
    head = f"{'':{width}} {'size':>6} {'value':>20} {'gradient':>20} {'ratio':>6} {'compiling':>10}"
    lines = [head] if done else []
    for one in done:
        lines.append(
            f"{one.name:{width}} {one.size:6} {shown(one.value):>20} {shown(one.gradient):>20} {one.ratio:6.2f}"
            f" {one.compiling:8.2f} s"
        )
    lines += [f"note: {one.name} {one.why}" for one in done if one.why]
    return lines + [f"not measured: {one.name} ({one.why})" for one in found if isinstance(one, Measured)]


def shown(t: Times) -> str:
    """`12.3 us +- 4 %`"""
    unit, name = next(((u, n) for u, n in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if t.median >= u), (1e-9, "ns"))
    spread = 100 * (t.high - t.low) / (2 * t.median) if t.median else 0.0
    return f"{t.median / unit:.3g} {name} +- {spread:.0f} %"
