"""Declarations done by the interpreter, as they come."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

from dpl.core import term
from dpl.core import ty as t
from dpl.eval.run import Interpreter
from dpl.eval.show import ESCAPES
from dpl.types.declarations import Item

from dplc.tools.process import on_large_stack

Told = tuple[str, term.Def | None]  # what is said of a new name, and the definition whose value is said, too


class Interpreted:
    def __init__(self, program: term.Program) -> None:
        self.interpreter = Interpreter(program, out=sys.stdout)

    def run(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        """Does items, and tells of them.  Raises DplError, ProgramExit, or KeyboardInterrupt."""
        self.interpreter.add(items)
        on_large_stack(lambda: self.work(items, told), interrupt)

    def work(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        for item in items:
            self.interpreter.item(item)
        for text, item in told:
            print(text if item is None else f"{text} = {self.shown(item)}", flush=True)

    def shown(self, item: term.Def) -> str:
        """A value as a program writes it."""
        value = self.interpreter.value(term.Var(item.body.span, item.ty, item.name))
        text = self.interpreter.show(value, item.ty)
        return f'"{text.translate(ESCAPES)}"' if item.ty == t.STRING else text


def interrupt(thread: int) -> None:
    """Raises KeyboardInterrupt in a thread of Python's."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
