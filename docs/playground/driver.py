"""DPL in a page: what the worker calls.  Answers are JSON; output goes to `say` as it comes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dpl

dpl.HOST = "driver:Browser"

from dpl.core.term import Program  # noqa: E402 -- the host is chosen first
from dpl.debug.breakpoints import Refused  # noqa: E402
from dpl.debug.debugger import Debugger, Stop  # noqa: E402
from dpl.debug.engine import engine_for  # noqa: E402
from dpl.debug.inspect import Frame, Variable  # noqa: E402
from dpl.diagnostics import Diagnostic, DplError  # noqa: E402
from dpl.eval.run import ProgramExit, run  # noqa: E402
from dpl.host import Host  # noqa: E402
from dpl.messages import as_json  # noqa: E402
from dpl.node import replace  # noqa: E402
from dpl.source import Source  # noqa: E402
from dpl.syntax import tables  # noqa: E402
from dpl.syntax.load import Module, load  # noqa: E402
from dpl.types import library  # noqa: E402
from dpl.types.check import check_program  # noqa: E402

MADE = Path(__file__).parent / "made"
MOST = 200_000  # characters of output
TOP = 12  # definitions that are shown at the top level
NAME = "program.dp"
STACK = "500"  # MiB: a runaway recursion ends soon, with a message
DEPTH = 4000  # of Python's own recursion: the browser's stack is small


class Browser(Host):
    """A browser: what takes seconds was made when the playground was built."""

    def shipped(self, name: str, sources: Iterable[Path], *more: str) -> bytes | None:
        file = MADE / f"{name}.bin"
        return file.read_bytes() if file.exists() else None

    def environment(self, name: str) -> str | None:
        return STACK if name == "DPL_STACK" else None

    def memory(self) -> int:
        return 1 << 31


class Enough(Exception):
    """Raised when a program prints too much."""


class Screen:
    """Where output goes."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.say = say
        self.written = 0

    def write(self, text: str) -> int:
        self.written += len(text)
        if self.written > MOST:
            raise Enough
        self.say(text)
        return len(text)

    def flush(self) -> None:
        """Everything is shown at once."""


def make() -> None:
    """Make what the pages need: the tables of the grammar, and the checked library."""
    MADE.mkdir(exist_ok=True)
    (MADE / f"{tables.NAME}.bin").write_bytes(tables.packed_tables())
    (MADE / f"{library.NAME}.bin").write_bytes(library.packed_library())


def begin() -> None:
    """Load the library.  Pictures become SVG where a terminal would get characters."""
    sys.setrecursionlimit(DEPTH)
    definitions = library.library().definitions
    definitions["Plot.text"] = replace(definitions["Plot.svg"], name="Plot.text")  # type: ignore[index]


def checked(text: str) -> tuple[Program, list[Diagnostic], list[Module]]:
    modules = load(Source(NAME, text))
    program, warnings = check_program(modules)
    return program, warnings, modules


def answer(work: Callable[[], list[Diagnostic]]) -> str:
    """The messages of some work, as JSON."""
    try:
        found = work()
    except DplError as failure:
        found = failure.diagnostics
    except RecursionError:
        found = [Diagnostic("R0801", "this is nested too deeply for the interpreter in a browser")]
    except MemoryError:
        found = [Diagnostic("R0802", "out of memory")]
    return json.dumps([as_json(d) for d in found])


def check(text: str) -> str:
    return answer(lambda: checked(text)[1])


def execute(text: str, say: Callable[[str], object]) -> str:
    """Run a program."""

    def work() -> list[Diagnostic]:
        program, warnings, _ = checked(text)
        try:
            run(program, out=Screen(say), engine=engine_for(program))  # type: ignore[arg-type]
        except ProgramExit as stop:
            say(f"[exit code {stop.code}]\n" if stop.code else "")
        except Enough:
            say("\n[more than this is not shown]\n")
        return warnings

    return answer(work)


# ---- stepping ---------------------------------------------------------------------------------------------------

debugger: Debugger | None = None


def debug(text: str, say: Callable[[str], object]) -> str:
    """Begin to step through a program, before its first line."""

    def work() -> list[Diagnostic]:
        global debugger
        program, warnings, modules = checked(text)
        debugger = Debugger(program, modules, (), Screen(say))  # type: ignore[arg-type]
        debugger.start()
        return warnings

    return answer(work)


def move(how: str) -> str:
    """Move, and tell where the program is: `step`, `next`, `out`, `continue`, `sweep` (to where a reverse sweep
    begins); with `back ` before it, in the other direction of time."""
    assert debugger
    back, word = how.startswith("back "), how.removeprefix("back ")
    try:
        if word == "sweep":
            made = debugger.add_breakpoint("rev")
            stopped = debugger.go("continue", back)
            debugger.delete_breakpoint(made.number)
            stopped = Stop("step") if stopped.reason == "breakpoint" else stopped
        else:
            stopped = debugger.go(word, back)
    except Enough:
        stopped = Stop("end", "the program prints too much")
    return json.dumps(seen(stopped))


def seen(stopped: Stop) -> dict[str, Any]:
    """What a page shows of a stopped program."""
    assert debugger
    frame, why = debugger.frame(), {"reason": stopped.reason, "text": stopped.text}
    if frame is None or stopped.reason == "end":
        return {**why, "line": 0, "reverse": False, "variables": at_the_top(None), "calls": []}
    here = [described(v, frame) for v in frame.variables() if v.kind != "captured" or frame.sweep]
    return {
        **why,
        "line": frame.place.span.line if frame.place.span.source.name == NAME else 0,
        "reverse": frame.sweep is not None,
        "variables": here or at_the_top(frame),
        "calls": [f"{f.name}, line {f.place.span.line}" for f in debugger.frames()[:12]],
    }


def at_the_top(frame: Frame | None) -> list[dict[str, str]]:
    """The program's last definitions: where no function is being called, these are what has a name."""
    assert debugger
    return [described(v, frame) for v in debugger.top_level()[-TOP:]]


def described(variable: Variable, frame: Frame | None) -> dict[str, str]:
    assert debugger
    value, derivative = debugger.describer.brief(variable.value, variable.ty), ""
    if frame is None:
        return {"name": variable.name, "value": value, "derivative": derivative}
    try:
        derivative = debugger.describer.brief(*debugger.derivative(variable.name, "", frame))
        derivative = "" if derivative == "<fun>" else derivative
    except (DplError, Refused):
        derivative = ""
    return {"name": variable.name, "value": value, "derivative": derivative}
