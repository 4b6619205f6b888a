"""Speculative execution: a program begins in the interpreter, and can begin again in native code.

    speculate(program, args, put)    the exit code; `put` gets each text that the program prints

So nothing else of what the program does may be seen from outside, and it must print what native code prints.
`Uncertain` is raised before anything for which that is not sure:

* an operation that asks or changes the world otherwise, and C functions;
* a function with operations whose last digits depend on the engine: derivatives, products of matrices, factorizations;
* much text and large arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dpl import host
from dpl.core import term as c
from dpl.core import ty as t
from dpl.eval.code.code import Code, Scope
from dpl.eval.code.terms import TermCompiler
from dpl.eval.machine.outside import ProgramExit
from dpl.eval.run import Interpreter
from dpl.eval.values import memory
from dpl.eval.values.value import Value
from dpl.prims.repeatable import READS, REFUSED

MOST_TEXT = 1 << 16  # characters
MOST_ELEMENTS = 1 << 20  # of an array


class Uncertain(BaseException):
    """The program must begin again in native code."""


class RepeatableCompiler(TermCompiler):
    """Compiles what can be done again.  A function is compiled at its first call."""

    def primitive(self, term: c.Prim, scope: Scope) -> Code:
        if term.op in REFUSED:
            raise Uncertain
        return super().primitive(term, scope)

    def implementation(self, term: c.Prim, types: tuple[t.Ty, ...]) -> Callable:
        made = super().implementation(term, types)
        return of_file(made) if term.op in READS else made

    def foreign(self, term: c.Extern) -> Value:
        raise Uncertain


def of_file(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """Reads what can be read again, which a pipe and a terminal cannot."""

    def run(path: str) -> Value:
        try:
            kind = host.current.kind(Path(path))
        except (OSError, ValueError):
            raise Uncertain from None
        if kind != "file":
            raise Uncertain
        return read(path)

    return run


class Speculation(Interpreter):
    COMPILER = RepeatableCompiler


class Channel:
    """What the program prints goes to `put`."""

    def __init__(self, put: Callable[[str], object]) -> None:
        self.put = put
        self.room = MOST_TEXT

    def write(self, text: str) -> None:
        self.room -= len(text)
        if self.room < 0:
            raise Uncertain
        self.put(text)

    def flush(self) -> None: ...


def speculate(program: c.Program, args: Sequence[str], put: Callable[[str], object]) -> int:
    """Run a program.  Returns its exit code; raises Uncertain, or DplError for a run-time error."""
    memory.room.most = MOST_ELEMENTS
    try:
        interpreter = Speculation(program, args, Channel(put))
        for item in program.items:
            interpreter.item(item)
    except ProgramExit as stop:
        return stop.code
    finally:
        memory.room.most = None
    return 0
