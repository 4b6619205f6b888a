"""`dpl debug`: a conversation about a run, in a terminal or from a script."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
from dpl.debug.breakpoints import Refused
from dpl.debug.debugger import Debugger
from dpl.eval.machine.outside import Writable
from dpl.garbage import collecting
from dpl.syntax.load import read

from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack
from dplc.tools.debug.console import Console, Leave, added
from dplc.tools.forerun import Uneventful, forerun
from dplc.tools.repl.interpreted import interrupt
from dplc.tools.repl.lines import Lines
from dplc.tools.report import warn
from dplc.tools.run import STDIN, text_of

CODES = {"R0601": "nonfinite"}  # what raises it
NONE_MET = {
    "error": "native code ran to the end without an error",
    "nonfinite": "native code ran to the end: no call, derivative or printed value is NaN or infinite\n"
    "(`break nonfinite` also stops at an infinity on the way to a finite result)",
}
FROM_START = "no state near the incident is known: the interpreter goes there from the start (Ctrl-C stops it)"
PATIENCE, LOOKS = 1.0, 20  # seconds for a step to end after Ctrl-C, and how often that is looked at


def loaded(file: str, args: Sequence[str], out: Writable) -> Debugger:
    """The debugger for a program that prints to `out`.  Raises DplError if it does not parse or check."""
    context = Context()
    program = compile_to("check", text_of(file, None), context)[1]
    warn(context.warnings)
    return Debugger(program, context.modules, args, out)


def loaded_at(debugger: Debugger, at: str) -> Debugger | Uneventful | None:
    """A debugger that begins shortly before an incident, to which the program ran natively; None if it must begin at
    the start."""
    run = debugger.run
    found = forerun(run.program, debugger.modules, run.args, CODES.get(at, at))
    if isinstance(found, Uneventful):
        return found
    if found is None or not found.skipped:
        return None
    return Debugger(found.program, debugger.modules, run.args, run.out, found.given)


def debug(file: str, args: Sequence[str], breaks: Sequence[str], watches: Sequence[str], script: str | None,
          at: str | None) -> int:  # fmt: skip
    """Debug a program.  Returns the exit code: 1 if a command of a script could not be done."""
    if file == STDIN and script is None:
        raise click.UsageError("the program comes from standard input, so commands need --script FILE")
    alone = script is not None or not sys.stdin.isatty()
    commands = scripted(script) if script else piped(taken_input()) if alone else None
    debugger = on_large_stack(lambda: loaded(file, args, sys.stdout))
    met = loaded_at(debugger, at) if at is not None else None
    nearer = met if isinstance(met, Debugger) else None
    if at is not None and isinstance(met, Uneventful):
        say(NONE_MET.get(CODES.get(at, at), f"native code ran to the end without a call of `{at}`"))
        at = None
    elif at is not None and met is None:
        say(FROM_START)
    console = Console(nearer or debugger, say)
    stop = lambda thread: pause(console.debugger, thread)  # noqa: E731

    on_large_stack(lambda: prepared(console, breaks, watches, at), stop)
    if nearer and nearer.stopped.reason == "end":  # it did not happen again
        console = Console(debugger, say)
        on_large_stack(lambda: prepared(console, breaks, watches, at), stop)
    with collecting(False):
        return converse(console, commands or typed(console), alone, stop)


def say(text: str) -> None:
    print(text, flush=True)


def pause(debugger: Debugger, thread: int) -> None:
    """Ctrl-C stops the program where it is, or the expression that is evaluated.  A step that takes long is left, and
    the program stands before it.  A second Ctrl-C meanwhile ends the debugger."""
    run = debugger.run
    if debugger.expressions.busy:
        return interrupt(thread)
    if run.interrupted:
        raise KeyboardInterrupt
    run.interrupted = True
    for _ in range(LOOKS):
        if not run.running:
            return
        time.sleep(PATIENCE / LOOKS)
    interrupt(thread)


def prepared(console: Console, breaks: Sequence[str], watches: Sequence[str], at: str | None) -> None:
    """Do what the options say."""
    debugger = console.debugger
    debugger.start()
    try:
        for text in watches:
            console.add_watch(text)
        for text in breaks:
            added(debugger, text)
        if at is not None:
            go_to_incident(debugger, console, at)
    except Refused as refusal:
        raise click.UsageError(str(refusal)) from None


def go_to_incident(debugger: Debugger, console: Console, at: str) -> None:
    """Run until an error, a number that is not finite, or a call."""
    made = debugger.add_breakpoint(CODES.get(at, at))
    console.moved("continue", False, None)
    debugger.delete_breakpoint(made.number)


def converse(console: Console, commands: Iterator[str], alone: bool, stop: Callable[[int], object]) -> int:
    right = True
    try:
        for line in commands:
            if alone:
                say(f"(dpl) {line.rstrip()}")
            right = on_large_stack(lambda line=line: console.obey(line), stop) and right
            unheard(console.debugger, alone)
    except Leave:
        pass
    return int(alone and not right)


def unheard(debugger: Debugger, alone: bool) -> None:
    """Drop a Ctrl-C that came after a command was done.  If commands come from a pipe or a script, end the debugger."""
    if debugger.run.interrupted:
        debugger.run.interrupted = False
        if alone:
            raise KeyboardInterrupt


def scripted(script: str) -> Iterator[str]:
    yield from read(Path(script)).text.splitlines()


def taken_input() -> int:
    """A pipe of commands: standard input, which is empty from now on, or the program could read them."""
    file, nowhere = sys.stdin.fileno(), os.open(os.devnull, os.O_RDONLY)
    commands = os.dup(file)
    os.dup2(nowhere, file)
    os.close(nowhere)
    return commands


def piped(file: int) -> Iterator[str]:
    lines = Lines(file)
    while line := lines.next():
        yield line


def typed(console: Console) -> Iterator[str]:
    from dplc.tools.debug.prompt import commands

    return commands(console)
