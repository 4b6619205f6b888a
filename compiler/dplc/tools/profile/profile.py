"""`dpl profile`: where a native program spends its time, by line and by function, and in which phase."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from dpl.diagnostics import DplError
from dpl.node import node, record
from dpl.source import NOWHERE, Span
from dpl.syntax.load import unreadable

from dplc.flat import places
from dplc.machine.failure.failures import LIBRARY, Sites, shown
from dplc.machine.failure.trace import Traces
from dplc.machine.llvm.sampler import is_possible
from dplc.machine.run.execute import ENTRY
from dplc.machine.run.program import LoadedImage, Program, load, run_loaded, sites_of
from dplc.machine.run.sampling import INTERVAL, NOBODY, Samples
from dplc.pipeline import Context
from dplc.stack import on_large_stack
from dplc.tools.profile import flame as flames
from dplc.tools.profile import pictures
from dplc.tools.report import warn
from dplc.tools.run import Begun, compile_native, text_of

PHASES = ("function", "forward sweep", "reverse sweep")
PLACES = {"": "code of the program", "runtime": "runtime: memory, products, sums, output", "library": "C libraries"}


@node
class Where:
    """A function, the line of it that was running (None: not known), and its phase if that is known."""

    function: str
    span: Span | None
    phase: str = ""

    @property
    def line(self) -> str:
        return f"{self.span.source.name}:{self.span.line}" if self.span else "?"

    def __str__(self) -> str:
        """The function with its line, and the file without its folders."""
        return f"{self.function} ({self.line.rpartition('/')[2]})" if self.span else self.function


@record
class Profile:
    """Stacks of samples, outermost first, each with where the machine was: a key of PLACES."""

    stacks: list[tuple[tuple[Where, ...], str]]
    seconds: float  # of the whole run
    processor: float  # seconds of processor time
    compilation: dict[str, float]

    @property
    def interval(self) -> float:
        """The processor time between two samples: the system takes fewer than it is asked for."""
        return self.processor / max(len(self.stacks), 1)


def profile(file: str, args: Sequence[str], top: int, flame: Path | None, trace: Path | None,
            speedscope: Path | None) -> int:  # fmt: skip
    """Run a program and print its profile on standard error.  Returns the program's exit code."""
    if not is_possible():
        raise click.UsageError("samples are taken on Linux only, on x86-64 and AArch64")
    source, context = text_of(file, None), Context(placed=True)
    program = on_large_stack(lambda: compile_native(Begun(source), context, True, False))
    assert program is not None
    warn(context.warnings)
    code, found, failure = sampled(program, args, context)
    if flame:
        write(flame, flames.flame([coloured(stack, place) for stack, place in found.stacks], found.interval))
    for path, draw in ((trace, pictures.chrome), (speedscope, pictures.speedscope)):
        if path:
            write(path, draw([[str(w) for w in stack] for stack, _ in found.stacks], found.interval))
    print(table(found, top), file=sys.stderr)
    if failure:
        raise failure
    return code


def coloured(stack: Sequence[Where], place: str) -> list[tuple[str, str]]:
    """The names of a stack for the flame graph, each with its phase; what is called stays in the phase of its caller,
    and what lies outside the program's code is on top."""
    found, kind = [], ""
    for where in stack:
        kind = where.phase or kind
        found.append((str(where), kind))
    return [*found, (place, "outside")] if place and stack[-1].function != place else found


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise unreadable(str(path), failure) from None


def sampled(program: Program, args: Sequence[str], context: Context) -> tuple[int, Profile, DplError | None]:
    """Run a program under samples: its exit code, its profile, and its failure if it failed."""
    loaded = load(program)
    samples = Samples(loaded.base, program.image.code)
    code, failure = 1, None
    begin, before = time.perf_counter(), time.process_time()
    try:
        with samples.taken():
            code = run_loaded(program, loaded, list(args))
    except DplError as error:
        failure = error
    seconds, processor = time.perf_counter() - begin, time.process_time() - before
    stacks = located(program, loaded, samples)
    return code, Profile(stacks, seconds, processor, dict(context.seconds)), failure


def located(program: Program, loaded: LoadedImage, samples: Samples) -> list[tuple[tuple[Where, ...], str]]:
    """The stacks of samples in terms of the source.  The system gives some ticks to a thread that waits, and so says
    nothing of where the time went: these are left out."""
    traces, sites = Traces(loaded.parts(program), ENTRY), sites_of(program)
    low, high = loaded.base, loaded.base + program.image.code
    known: dict[int, list[Where]] = {}

    def at(address: int) -> list[Where]:
        if address not in known:
            known[address] = [w for frame in traces.at(address) for w in inlined(frame.function, frame.site, sites)]
        return known[address]

    found = []
    for pc, caller, returns in samples.stacks():
        stack = [w for address in reversed(returns) for w in at(address - 1)]
        here = at(pc)
        outside = "" if here else "runtime" if low <= pc < high else "library"
        if outside == "library" and caller == NOBODY and not returns:
            continue
        if outside and caller != NOBODY:  # a function that keeps no frame pointer
            here = at(caller - 1)
        found.append((tuple([*stack, *here] or [Where(outside, None)]), outside))
    return found


def inlined(function: str, site: int, sites: Sites) -> list[Where]:
    """A function at a site, and those that flat has inlined there, outermost first."""
    span, _ = sites.place(site)
    name = shown(sites.labels.get(function.removesuffix(" loop"), "")) or "top level"  # a kernel's loop is apart
    phase = "reverse sweep" if ".bwd" in function else "forward sweep" if ".fwd" in function else ""
    if span == NOWHERE:
        return [Where(name, None, phase)]
    found = []
    for called, call in places.path(span):
        found.append(Where(name, call if call != NOWHERE else None, phase))
        name = shown(called)
        phase = "reverse sweep" if name.startswith("reverse of") else phase
    return [*found, Where(name, span, phase)]


def phase(stack: Sequence[Where]) -> str:
    """What the innermost function is for which that is known: the function itself, or a sweep of a derivative."""
    return next((where.phase for where in reversed(stack) if where.phase), "function")


# ---- the table ------------------------------------------------------------------------------------------------------


def table(found: Profile, top: int) -> str:
    total = len(found.stacks)
    if not total:
        return f"{found.seconds:.3f} s: too short for samples (one each {1000 * INTERVAL:.0f} ms)"
    phases = Counter(phase(stack) for stack, _ in found.stacks)
    outside = Counter(place for _, place in found.stacks)
    lines = [f"{total} samples, {found.processor:.2f} s of processor time in {found.seconds:.2f} s"]
    lines += [f"{share(phases[name], total)}  {name}" for name in PHASES if phases[name]]
    lines += ["", *(f"{share(outside[key], total)}  {text}" for key, text in PLACES.items() if outside[key])]
    lines.append(f"         compiled before that, in {sum(found.compilation.values()):.2f} s")
    lines += ["", "   self   total  line", *rows(found, top, by_line)]
    lines += ["", "   self   total  function", *rows(found, top, lambda where: where.function)]
    return "\n".join(lines)


def by_line(where: Where) -> str:
    span = where.span
    if span is None or span.source.name.startswith(LIBRARY):
        return ""
    return f"{where.line}  {span.source.line(span.line).strip()[:70]}"


def rows(found: Profile, top: int, key) -> list[str]:
    """The largest rows of a table.  Time in the library belongs to the line that called it."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for stack, _ in found.stacks:
        keys = [k for where in stack if (k := key(where))]
        if keys:
            own[keys[-1]] += 1
        whole.update(set(keys))
    total = len(found.stacks)
    best = sorted(whole, key=lambda k: (-own[k], -whole[k], k))[:top]
    return [f"{share(own[k], total)} {share(whole[k], total)}  {k}" for k in best]


def share(count: int, total: int) -> str:
    return f"{100 * count / total:5.1f} %"
