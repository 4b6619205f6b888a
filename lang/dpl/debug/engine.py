"""The interpreter for a program: the debugger's code, if the program looks at a sweep, else the plain one."""

from __future__ import annotations

from collections.abc import Iterable

from dpl.core import term as c
from dpl.eval.code.mentioned import mentions
from dpl.eval.run import Interpreter


def looks_at_sweeps(items: Iterable[c.Def | c.Do | c.Expect]) -> bool:
    """True if a program asks for the cotangents of a reverse sweep (`Trace.sweep`)."""
    return mentions(items, "Trace.sweep")


def engine_for(program: c.Program) -> type[Interpreter]:
    """The class of the interpreter for a program.  The debugger's is imported only where it is needed."""
    if not looks_at_sweeps(program.items):
        return Interpreter
    from dpl.debug.recording import Recording

    return Recording
