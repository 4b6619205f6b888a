"""`dpl repl`: reads inputs from a terminal or another source until the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from dpl.eval.machine.outside import ProgramExit

from dplc.tools.repl.inputs import ready
from dplc.tools.repl.lines import Lines
from dplc.tools.repl.session import Session
from dplc.tools.repl.verbs import Leave, answer


def converse(engine: str, load: Path | None) -> int:
    """Run a session.  Returns the exit code: the program's if it called `exit`; otherwise 0, or without a terminal 1 if
    an input had errors."""
    session = Session(engine)
    right = session.load(load) if load else True
    alone = not sys.stdin.isatty()
    try:
        for text in inputs(Lines(sys.stdin.fileno())) if alone else typed(session):
            right = answer(session, text) and right
            sys.stdout.flush()
    except Leave:
        pass
    except ProgramExit as stop:
        return stop.code & 0xFF
    return int(alone and not right)


def typed(session: Session) -> Iterator[str]:
    from dplc.tools.repl.terminal import lines

    return lines(session)


def inputs(lines: Lines) -> Iterator[str]:
    """The inputs of a text that is not from a terminal: a line, with the following lines that are indented or that
    complete it.  A complete input is returned without waiting for the next line."""
    gathered = ""
    while True:
        if gathered.strip() and not lines.goes_on() and ready(gathered):
            yield gathered
            gathered = ""
        line = lines.next()
        if gathered.strip() and (not line or line.startswith(":")):
            yield gathered
            gathered = ""
        if not line:
            return
        gathered += line
