"""`dpl bench --cost --plot FILE`: draws the cost of functions and gradients over the size, with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from dplc.tools.bench.cost import Report
from dplc.tools.files import unwritable

COLUMNS, INCHES = 4, 2.6


def draw(found: Sequence[Report], path: Path) -> None:
    """Draw a panel for each measured function: its operations and those of its gradient, on logarithmic axes."""
    shown = [report for report in found if report.costs]
    columns = max(1, min(COLUMNS, len(shown)))
    rows = max(1, math.ceil(len(shown) / columns))
    figure = Figure(figsize=(INCHES * columns, INCHES * rows), layout="constrained")
    for at, report in enumerate(shown):
        axes = figure.add_subplot(rows, columns, at + 1, xscale="log", yscale="log", title=report.name)
        sizes = [cost.size for cost in report.costs]
        axes.plot(sizes, [cost.work for cost in report.costs], marker="o", label="function")
        axes.plot(sizes, [cost.gradient_operations for cost in report.costs], marker="o", label="gradient")
        axes.set_xlabel("size")
        if at % columns == 0:
            axes.set_ylabel("operations")
    if shown:
        figure.axes[0].legend()
    try:
        figure.savefig(path)
    except OSError as failure:
        raise unwritable(path, failure) from None
