"""Declarations done by the interpreter, as they come."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

from dpl.core import term
from dpl.eval.run import Interpreter
from dpl.types.declarations import Item

from dplc.tools.process import on_large_stack


class Interpreted:
    def __init__(self, program: term.Program) -> None:
        self.interpreter = Interpreter(program, out=sys.stdout)

    def run(self, items: Sequence[Item]) -> None:
        """Raises DplError, ProgramExit, or KeyboardInterrupt."""
        self.interpreter.add(items)
        on_large_stack(lambda: [self.interpreter.item(item) for item in items], interrupt)

    def show(self, item: term.Def) -> str:
        """The value of a definition that was run, as a program writes it."""
        value = term.Var(item.body.span, item.ty, item.name)
        return on_large_stack(lambda: self.interpreter.show(self.interpreter.value(value), item.ty), interrupt)


def interrupt(thread: int) -> None:
    """Raises KeyboardInterrupt in a thread of Python's."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
