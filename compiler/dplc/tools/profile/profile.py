"""`dpl profile`: where a native program spends its time or its memory, by line and by function, and in which phase."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from dpl.diagnostics import DplError
from dpl.node import record

from dplc.machine.llvm.sampler import is_possible
from dplc.machine.run.linked import AWAITS, length
from dplc.machine.run.program import LoadedImage, Program, load, run_loaded
from dplc.machine.run.sampling import INTERVAL, MOST, NOBODY, Samples
from dplc.pipeline import Context
from dplc.stack import on_large_stack
from dplc.tools.arguments import refuse_options
from dplc.tools.files import put
from dplc.tools.profile import flame as flames
from dplc.tools.profile import memory, pictures
from dplc.tools.profile.stacks import Code, Reader, Stack
from dplc.tools.profile.tables import by_line_and_function, phases, share
from dplc.tools.report import warn
from dplc.tools.run import Begun, compile_native, text_of

PLACES = {"code": "code of the program", "runtime": "runtime: memory, products, sums, output",
          "library": "C libraries", "waiting": "threads that wait for a part of a loop"}  # fmt: skip
Failure = DplError | KeyboardInterrupt
COARSE = "the system allows no precise clock here, so these are the ticks of its own: lines may be met too often"


@record
class Wanted:
    """What the user asks for: rows of each table, and files for pictures."""

    top: int
    flame: Path | None
    trace: Path | None
    speedscope: Path | None


@record
class Profile:
    """The samples, in their order."""

    stacks: list[Stack]
    seconds: float  # of the whole run
    processor: float  # seconds of processor time
    compilation: float
    precise: bool  # whether the clock was
    left_out: int = 0  # samples at the end for which there was no room

    @property
    def interval(self) -> float:
        """The processor time between two samples: the system takes fewer than it is asked for."""
        return self.processor / max(len(self.stacks) + self.left_out, 1)


def profile(file: str, args: Sequence[str], wanted: Wanted, of_memory: bool) -> int:
    """Run a program and print its profile on standard error.  Returns the program's exit code."""
    if not is_possible():
        raise click.UsageError("profiles are made on Linux only, on x86-64 and AArch64")
    if of_memory and wanted.trace:
        raise click.UsageError("--trace shows time: it does not go with --memory")
    source, context = text_of(file, None), Context(placed=True, watched=of_memory)
    program = on_large_stack(lambda: compile_native(Begun(source), context, True, False))
    assert program is not None
    warn(context.warnings)
    if not program.reads_arguments:
        refuse_options(args)
    code, failure = (watched if of_memory else timed)(program, args, context, wanted)
    if failure:
        raise failure
    return code


def timed(program: Program, args: Sequence[str], context: Context, wanted: Wanted) -> tuple[int, Failure | None]:
    code, found, failure = sampled(program, args, context)
    print(table(found, wanted.top), file=sys.stderr)
    amount, calls = flames.Amount("s", found.interval), [names(stack) for stack in found.stacks]
    write(wanted.flame, lambda: flames.flame([(coloured(s), s.weight) for s in found.stacks], amount))
    write(wanted.trace, lambda: pictures.chrome(calls, found.interval))
    write(wanted.speedscope, lambda: pictures.speedscope(calls, [found.interval] * len(calls), "seconds"))
    return code, failure


def watched(program: Program, args: Sequence[str], context: Context, wanted: Wanted) -> tuple[int, Failure | None]:
    code, found, stacks, failure = memory.run_watched(program, args)
    print(memory.table(found, stacks, wanted.top), file=sys.stderr)
    amount = flames.Amount("bytes", 1)
    write(wanted.flame, lambda: flames.flame([(coloured(s), s.weight) for s in stacks], amount))
    bytes_of = [stack.weight for stack in stacks]
    write(wanted.speedscope, lambda: pictures.speedscope([names(s) for s in stacks], bytes_of, "bytes"))
    return code, failure


def names(stack: Stack) -> list[str]:
    return [str(where) for where in stack.calls] or [stack.place]


def coloured(stack: Stack) -> list[tuple[str, str]]:
    """The names of a stack for the flame graph, each with its phase; what is called stays in the phase of its caller,
    and what lies outside the program's code is on top."""
    found, kind = [], ""
    for where in stack.calls:
        kind = where.phase or kind
        found.append((str(where), kind))
    return found if stack.place == "code" else [*found, (stack.place, "outside")]


def write(path: Path | None, text: Callable[[], str]) -> None:
    """Write a picture to a file, if there is to be one."""
    if path is not None:
        put(path, text().encode())


def sampled(program: Program, args: Sequence[str], context: Context) -> tuple[int, Profile, Failure | None]:
    """Run a program under samples: its exit code, its profile, and its failure if it failed.  Ctrl-C is one: what was
    met until then is told."""
    loaded = load(program)
    samples = Samples(loaded.base, program.image.code)
    code, failure = 1, None
    begin, before = time.perf_counter(), time.process_time()
    try:
        with samples.taken():
            code = run_loaded(program, loaded, list(args))
    except (DplError, KeyboardInterrupt) as error:
        failure = error
    seconds, processor = time.perf_counter() - begin, time.process_time() - before
    stacks, compilation = located(program, loaded, samples), sum(context.seconds.values())
    left_out = max(samples.count.value - MOST, 0)
    return code, Profile(stacks, seconds, processor, compilation, samples.precise, left_out), failure


def located(program: Program, loaded: LoadedImage, samples: Samples) -> list[Stack]:
    """The stacks of samples in terms of the source.  The system's own clock gives some ticks to Python's thread, which
    waits, and so says nothing of where the time went: these are left out."""
    reader, found = Reader(program, loaded), list[tuple[list[Code], str]]()
    last: list[Code] = []
    low, high = loaded.base, loaded.base + program.image.code
    waits = loaded.base + program.image.exports[AWAITS]
    waiting = range(waits, waits + length(AWAITS))
    for pc, caller, returns in samples.stacks():
        if any(address in waiting for address in (pc, caller, *returns)):
            found.append(([], "waiting"))
            continue
        codes, here = reader.read(address - 1 for address in reversed(returns)), reader.at(pc)
        place = "code" if here[0] else "runtime" if low <= pc < high else "library"
        if place == "library" and caller == NOBODY and not returns:
            continue
        if place != "code" and caller != NOBODY:  # a function that keeps no frame pointer
            here = reader.at(caller - 1)
        codes = reader.joined(codes, here) if here[0] else codes
        last = codes = codes or last  # the runtime's work that threads share is done for whoever shares it out
        found.append((codes, place))
    return [Stack(reader.whole(codes), place) for codes, place in found]


def table(found: Profile, top: int) -> str:
    total = len(found.stacks)
    if not total:
        return f"{found.seconds:.3f} s: too short for samples (one each {1000 * INTERVAL:.0f} ms)"
    outside = Counter(stack.place for stack in found.stacks)
    lines = [f"{total} samples, {found.processor:.2f} s of processor time in {found.seconds:.2f} s"]
    if found.left_out:
        lines.append(f"the last {found.left_out} more are left out: there is room for {MOST}")
    if not found.precise:
        lines.append(COARSE)
    lines += [*phases([stack for stack in found.stacks if stack.place != "waiting"], total), ""]
    lines += [f"{share(outside[key], total)}  {text}" for key, text in PLACES.items() if outside[key]]
    lines.append(f"         compiled before that, in {found.compilation:.2f} s")
    return "\n".join([*lines, "", *by_line_and_function(found.stacks, top)])
