"""A program's text -> what each engine makes of it, in a process that may crash, hang or fail without harm.

The child is a fork of a process that is warm (grammar, standard library and LLVM loaded), so a small program takes a
fraction of a second for both engines together.
"""

from __future__ import annotations

import io
import os
import signal
import tempfile
import traceback
from contextlib import ExitStack
from dataclasses import dataclass

from dpl.diagnostics import DplError
from dpl.eval.run import run
from dpl.source import Source
from dplc.machine.jit import execute
from dplc.passes import NeedsInterpreter
from dplc.pipeline import Context, stages
from dplc.tools.process import on_large_stack

SECONDS = 60
DONE, STARTED, INTERPRETED = "done", "started", "left to the interpreter"
REJECTED = "rejected"
ENGINES = ("interp", "native")


@dataclass(frozen=True)
class Outcome:
    """What was printed; `failure` is empty, a run-time error's code, or the account of a crash of ours."""

    output: str
    failure: str

    @property
    def crashed(self) -> bool:
        return len(self.failure) > len("R0000")


def warm_up() -> None:
    """Load in this process what its children will need."""
    for text in ("do print 1\n", "do print (grad sin 1.0)\n"):
        on_large_stack(lambda text=text: list(through_stages(text)))


def both(text: str) -> dict[str, Outcome]:
    """The outcome by engine; what ended the child early is a failure of the engine that was running."""
    with ExitStack() as stack:
        files = {engine: [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)] for engine in ENGINES}
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            on_large_stack(lambda: attempt(text, files))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        outcomes = {engine: Outcome(*(content(file) for file in pair)) for engine, pair in files.items()}
    if os.WIFSIGNALED(status):
        last = [engine for engine in ENGINES if outcomes[engine].failure][-1]
        outcomes[last] = Outcome(outcomes[last].output, f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    if outcomes["native"].failure == INTERPRETED:
        outcomes["native"] = outcomes["interp"]
    return {engine: Outcome(o.output, "" if o.failure == DONE else o.failure) for engine, o in outcomes.items()}


def content(file: io.BufferedRandom) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def attempt(text: str, files: dict) -> None:
    """In the child: all stages, the interpreter after the check, native code at the end."""
    values = through_stages(text)
    for engine, execution in zip(ENGINES, (interpreted, native), strict=True):
        out, failure = files[engine]
        note(failure, STARTED)
        os.dup2(out.fileno(), 1)
        said = account(lambda execution=execution: execution(values))
        note(failure, said)
        if said.startswith(REJECTED):
            return


def note(file, text: str) -> None:
    os.ftruncate(file.fileno(), 0)
    os.pwrite(file.fileno(), text.encode(), 0)


def account(work) -> str:
    try:
        work()
        return DONE
    except DplError as error:
        code = error.diagnostics[0].code
        return code if code.startswith("R") else f"{REJECTED}: {code} {error}"
    except NeedsInterpreter:
        return INTERPRETED
    except Exception:
        return f"crashed: {traceback.format_exc()}"


def through_stages(text: str):
    value, context = Source("<random>", text), Context(verify=True)
    for stage in stages():
        value = stage.run(value, context)
        if stage.verify:
            stage.verify(value)
        if stage.name in ("check", "object"):
            yield value


def interpreted(values) -> None:
    out = io.StringIO()
    try:
        run(next(values), out=out)
    finally:
        os.write(1, out.getvalue().encode())


def native(values) -> None:
    execute(next(values))
