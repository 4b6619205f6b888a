"""`dpl bench --cost`: counts the cost of functions and their gradients at growing sizes, and measures their time.

Operations are those of the compiled program (`flat/operation_counts.py`).  Bytes are those that it allocates for arrays
and cells, including copies and the residuals kept for the backward sweep.  Counts are exact: the same on every run and
machine.

The ratio divides the gradient's operations by the function's operations plus one for each float of its arguments and
result, because the gradient must at least write those.  It grows if the largest size has a ratio more than a tenth
above that of every smaller size.  `memory` divides the bytes that the gradient allocates by the bytes of the function
plus eight times the divisor of the ratio.

Times are those of `dpl bench`, at its sizes.  They differ from run to run, so nothing fails by them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import click
from dpl.node import node
from dpl.source import Source

from dplc.machine.object.compiled import Compiled
from dplc.stack import on_large_stack
from dplc.tools.bench.bench import Timed, shown, times
from dplc.tools.bench.driver import COST, subjects
from dplc.tools.bench.measure import LIMIT, Measured, measure

SIZES = (16, 32, 64, 128, 256)
SQUARES = (8, 16, 32, 64, 128)  # for arguments with two or more dimensions
GROWTH = 1.1


@node
class Cost:
    """The cost of a function and its gradient at one size.  `floats` counts those in its arguments and its result."""

    size: int
    floats: int
    operations: int
    bytes: int
    gradient_operations: int
    gradient_bytes: int
    kept: int  # bytes that are held between the forward and the reverse sweep

    @property
    def work(self) -> int:
        return self.operations + self.floats

    @property
    def ratio(self) -> float:
        return self.gradient_operations / self.work

    @property
    def memory(self) -> float:
        return self.gradient_bytes / (self.bytes + 8 * self.work)


@node
class Report:
    """The costs of a function by size, or the reason why there are none."""

    name: str
    costs: tuple[Cost, ...]
    why: str = ""

    @property
    def grows(self) -> list[str]:
        """The growing quantities: `ratio`, `memory`, both or none.  Stored arrays grow by doubling, so `memory` may
        differ by a factor of two between sizes without growing."""
        found = {"ratio": ([c.ratio for c in self.costs], 1.0), "memory": ([c.memory for c in self.costs], 2.0)}
        return [
            what for what, ((first, *more), wobble) in found.items()
            if more and more[-1] > max(first * wobble, *(first, *more)[:-1]) * GROWTH
        ]  # fmt: skip


def costs(
    target: str,
    names: Sequence[str] = (),
    sizes: Sequence[int] = SIZES,
    squares: Sequence[int] = SQUARES,
    limit: float = LIMIT,
) -> list[Report]:
    """The reports for all functions of a file or of the library, including those that cannot be measured."""

    def work() -> list[Report]:
        return [
            report(measured)
            for subject in subjects(target, names)
            for measured in measure(subject, COST, counting, lambda case: squares if case.width > 1 else sizes, limit)
        ]

    return on_large_stack(work)


def report(measured: Measured) -> Report:
    return Report(measured.name, tuple(Cost(*map(int, row)) for row in measured.rows), measured.why)


def counting(source: Source) -> Compiled:
    """The program, compiled with counters."""
    from dplc.flat.operation_counts import tally
    from dplc.machine.emit.llvm import emit_text
    from dplc.machine.llvm.versions import plain
    from dplc.machine.object.assemble import assemble
    from dplc.machine.runtime import shared
    from dplc.passes.memory.reference_counts import count_references
    from dplc.passes.parallel.parallel import parallel
    from dplc.pipeline import Context, compile_to

    fused = compile_to("fuse", source, Context())[1]
    text, sites = emit_text(count_references(parallel(tally(fused))), counting=True)
    code = assemble(plain(text, shared.shared().texts), most=0)  # optimisation would not change the counts
    return Compiled(code, sites.to_json())


# ---- output


def tell_costs(
    target: str,
    names: Sequence[str],
    limit: float,
    as_json: bool,
    draw: Callable[[Sequence[Report]], None] | None = None,
    most: float | None = None,
) -> int:
    """Print the costs, and pass them to `draw`.  Returns exit code 1 if something grows, or if a ratio is above `most`,
    which is then told on standard error."""
    found = costs(target, names, limit=limit)
    timed = seconds(target, [report.name for report in found if report.costs], limit)
    for line in (as_object(report, timed) for report in found) if as_json else table(found, timed):
        print(line)
    if draw:
        draw(found)
    above = [r for r in found if most is not None and r.costs and r.costs[-1].ratio > most]
    for r in above:
        click.echo(f"the gradient of {r.name} costs {r.costs[-1].ratio:.2f} functions, not {most:g} at most", err=True)
    return int(bool(above) or any(report.costs and report.grows for report in found))


def seconds(target: str, names: Sequence[str], limit: float) -> dict[str, Timed]:
    """The times of functions, by name, where they can be measured."""
    found = on_large_stack(lambda: list(times(target, names, None, limit))) if names else []
    return {one.name: one for one in found if isinstance(one, Timed)}


def as_object(report: Report, timed: Mapping[str, Timed]) -> str:
    rows = [
        {
            "size": c.size, "floats": c.floats, "operations": c.operations, "bytes": c.bytes,
            "gradient": {"operations": c.gradient_operations, "bytes": c.gradient_bytes, "kept": c.kept},
            "ratio": round(c.ratio, 3), "memory": round(c.memory, 3),
        }
        for c in report.costs
    ]  # fmt: skip
    if not rows:
        return json.dumps({"name": report.name, "skipped": report.why})
    more = {"limited": report.why} if report.why else {}
    if one := timed.get(report.name):
        more |= {"time": {"size": one.size, "value": one.value.median, "gradient": one.gradient.median}}
    return json.dumps({"name": report.name, "grows": report.grows, "costs": rows, **more})


def table(found: Sequence[Report], timed: Mapping[str, Timed]) -> list[str]:
    """A line for each function at its largest size, with the ratios at all sizes, and its time."""
    width = max([len(r.name) for r in found if r.costs], default=0)
    head = f"{'':{width}} {'size':>6} {'operations':>12} {'gradient':>12} {'bytes':>12} {'gradient':>12}  ratio by size"
    ratios = {r.name: " ".join(f"{cost.ratio:5.2f}" for cost in r.costs) for r in found}
    wide = max(len("ratio by size"), *map(len, ratios.values())) if width else 0
    lines = [f"{head[:-13]}{'ratio by size':{wide}} {'size':>6} {'time':>18} {'ratio':>6}"] if width else []
    for r in found:
        if r.costs:
            c = r.costs[-1]
            grows = "  grows" if "ratio" in r.grows else ""
            grows += "  memory grows" if "memory" in r.grows else ""
            lines.append(
                f"{r.name:{width}} {c.size:6} {c.operations:12} {c.gradient_operations:12} {c.bytes:12}"
                f" {c.gradient_bytes:12}  {ratios[r.name]:{wide}}{in_time(timed.get(r.name))}{grows}"
            )
    lines += [f"note: {r.name} {r.why}" for r in found if r.costs and r.why]
    skipped = [f"not measured: {r.name} ({r.why})" for r in found if not r.costs]
    return lines + skipped


def in_time(one: Timed | None) -> str:
    """The size at which a function was timed, its time, and that of its gradient by it."""
    return f" {one.size:6} {shown(one.value):>18} {one.ratio:6.2f}" if one else ""
