"""A program's text -> what each engine makes of it, in a process that may crash, hang or fail without harm.

The process is a fork of one that is warm (grammar, standard library and LLVM loaded), and takes program after program
until it dies or is old.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

from dpl.core import term
from dpl.diagnostics import DplError
from dpl.eval.run import run
from dpl.node import replace
from dpl.source import Source
from dplc.ad import derivatives
from dplc.machine.failure.failures import Sites
from dplc.machine.llvm.versions import final, plain
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.run.linked import linked
from dplc.machine.run.program import execute
from dplc.machine.runtime import shared
from dplc.passes import NeedsInterpreter
from dplc.pipeline import NAMES, STAGES, Context, compile_to
from dplc.stack import on_large_stack

from doubt.roads import ROADS

SECONDS = 30  # of the processor, for one program on one engine
OUT_OF_TIME = "by SIGPROF"
AGE = 100  # programs
DONE = "done"
INTERP, NATIVE, OPTIMISED, DEVICE = "interp", "native", "optimised", "device"
EFFORT = {NATIVE: 0, OPTIMISED: 2, DEVICE: 0}  # LLVM's: to optimise takes longer than all else together
ACTIVITIES = (derivatives.ACTIVITIES, 1)  # so many are seldom: each other program has derivatives that serve several


@dataclass(frozen=True)
class Outcome:
    """What was printed, and how it ended: `done`, `failed` when it ran, `rejected` by the checker, `refused` by the
    compiler, `crashed` or `killed`; with the code of the error, or the reason; and what a failure's message says."""

    output: str
    end: str
    why: str = ""
    message: str = ""


class Oracle:
    """Asks a process of its own, and starts another when that is gone."""

    def __init__(self) -> None:
        on_large_stack(warm_up)
        self.output = os.memfd_create("output")
        self.child = 0
        self.age = 0

    def ask(self, engine: str, text: str, left_out: Collection[int] = ()) -> Outcome:
        """What the engine makes of a program; `left_out` are top-level items, numbered as in a sequence's end."""
        if not self.child:
            self.start()
        os.ftruncate(self.output, 0)
        send(self.question, f"{engine}\n{' '.join(map(str, left_out))}\n{text}")
        answer = receive(self.answer)
        self.age += 1
        message = ""
        if answer is None:
            end, why = "killed", f"by {signal.Signals(os.WTERMSIG(self.wait())).name}"
        else:
            end, _, why = answer.partition("\n")
            if end == "failed":
                why, _, message = why.partition("\n")
            if self.age >= AGE:
                self.stop()
        return Outcome(content(self.output), end, why, message)

    def start(self) -> None:
        theirs, self.question = os.pipe()
        self.answer, ours = os.pipe()
        self.child, self.age = os.fork(), 0
        if self.child == 0:
            os.close(self.question)
            os.dup2(self.output, 1)
            on_large_stack(lambda: serve(theirs, ours))
            os._exit(0)
        os.close(theirs)
        os.close(ours)

    def stop(self) -> None:
        os.kill(self.child, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        _, status = os.waitpid(self.child, 0)
        os.close(self.question)
        os.close(self.answer)
        self.child = 0
        return status


def warm_up() -> None:
    """Load in this process what its children will need."""
    for text in ("do print 1\n", "do print (grad sin 1.0)\n"):
        list(through_stages(checked(text)))
    gc.freeze()


def send(pipe: int, text: str) -> None:
    data = text.encode()
    with os.fdopen(os.dup(pipe), "wb") as file:
        file.write(len(data).to_bytes(8, "little") + data)


def receive(pipe: int) -> str | None:
    """The next message; None if the other end is gone."""
    with os.fdopen(os.dup(pipe), "rb", buffering=0) as file:
        size = int.from_bytes(file.read(8) or b"", "little")
        parts, missing = [], size
        while missing and (part := file.read(missing)):
            parts.append(part)
            missing -= len(part)
    return b"".join(parts).decode() if size and not missing else None


def content(file: int) -> str:
    return os.pread(file, os.fstat(file).st_size, 0).decode("utf-8", "replace")


# ---- in the child ----


def serve(questions: int, answers: int) -> None:
    gc.disable()  # it does not grow old
    while (question := receive(questions)) is not None:
        engine, left_out, text = question.split("\n", 2)
        os.lseek(1, 0, os.SEEK_SET)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        answer = ended(lambda: answered(engine, text, list(map(int, left_out.split()))))  # noqa: B023
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(answers, answer)


def ended(work: Callable[[], object]) -> str:
    try:
        work()
        return DONE
    except DplError as error:
        code = error.diagnostics[0].code
        return f"failed\n{code}\n{told(error)}" if code.startswith("R") else f"rejected\n{code} {error}"
    except NeedsInterpreter as refusal:
        return f"refused\n{refusal.reason}"
    except Exception:
        return f"crashed\n{traceback.format_exc()}"


def told(error: DplError) -> str:
    """The title of a message, and what it points at."""
    first = error.diagnostics[0]
    return f"{first.title}: {first.span and first.span.source.text[first.span.start : first.span.end]}"


def answered(engine: str, text: str, left_out: Collection[int]) -> None:
    program = checked(text)
    first = -len(program.items)
    kept = [item for number, item in enumerate(program.items, first) if number not in left_out]
    derivatives.ACTIVITIES = ACTIVITIES[len(text) % 2]
    program = replace(program, items=kept)
    if engine == INTERP:
        interpreted(program)
    else:
        native(program, engine)


@lru_cache(maxsize=1)
def checked(text: str) -> term.Program:
    """The program in core.  One engine is asked after the other, so it is kept until another one comes."""
    return compile_to("check", Source("<random>", text), Context(verify=True))[1]


def through_stages(program: term.Program, device: bool = False) -> Iterator:
    """What the stages after the checker give; every form that has a verifier is verified."""
    value, context = program, Context(verify=True, device=device)
    for stage in STAGES[NAMES.index("check") + 1 :]:
        value = stage.run(value, context)
        stage.verify(value)
        yield stage.name, value


def interpreted(program: term.Program) -> None:
    out = io.StringIO()
    try:
        run(program, out=out)
    finally:
        os.write(1, out.getvalue().encode())


def native(program: term.Program, engine: str) -> None:
    def written() -> tuple[str, Sites]:
        return next(value for name, value in through_stages(program, engine == DEVICE) if name == "llvm")

    if engine in ROADS:
        ROADS[engine](program, written)
        return
    module, sites = written()
    effort = EFFORT[engine]
    text = final(module) if effort else plain(module, shared.shared().texts)
    execute(linked(Compiled(assemble(text, most=effort), sites.to_json())))
