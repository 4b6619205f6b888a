"""The engine of a session that runs its declarations in the interpreter."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from dpl.core import term
from dpl.core import ty as t
from dpl.debug.engine import engine_for, looks_at_sweeps
from dpl.eval.run import Interpreter
from dpl.eval.values.show import ESCAPES
from dpl.node import node
from dpl.source import NOWHERE
from dpl.types.declarations import Item

from dplc.stack import on_large_stack

Told = tuple[str, term.Def | None]  # the text for a new name, and the definition whose value follows, if any

PICTURE = t.Con("Plot.picture")


@node
class Drawing:
    """How a session shows pictures: the function that turns one into text, which is printed inside `around`."""

    function: str = "Plot.text"
    around: Callable[[], AbstractContextManager[object]] = nullcontext

    def text(self, library: Mapping[str, term.Def], picture: term.Term) -> term.Term:
        """A term for the text of a picture."""
        return term.App(NOWHERE, t.STRING, use(library[self.function]), picture)


class Restless(Exception):
    """An engine cannot run an input; the message says why.  The interpreter for the program as it is must take over."""


class Interpreted:
    def __init__(self, program: term.Program, drawing: Drawing) -> None:
        self.interpreter = engine_for(program)(program, out=sys.stdout)
        self.drawing = drawing

    def run(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        """Run items and print what is `told` of them.  Raises DplError, ProgramExit, KeyboardInterrupt, Restless."""
        if looks_at_sweeps(items) and type(self.interpreter) is Interpreter:
            raise Restless("sweeps are recorded from here on")
        self.interpreter.add(items)
        on_large_stack(lambda: self.work(items, told), interrupt)

    def forget(self, names: Collection[str]) -> None:
        """Drop definitions that are no longer reachable."""
        self.interpreter.forget(names)

    def work(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        for item in items:
            self.interpreter.item(item)
        for text, item in told:
            if item is None:
                print(text, flush=True)
            elif item.ty == PICTURE:
                print(text)
                self.draw(item)
            else:
                print(f"{text} = {self.written(item)}", flush=True)

    def draw(self, picture: term.Def) -> None:
        text = self.drawing.text(self.interpreter.program.library, use(picture))
        with self.drawing.around():
            print(str(self.interpreter.value(text)).removesuffix("\n"), flush=True)

    def written(self, item: term.Def) -> str:
        value = self.interpreter.value(use(item))
        text = self.interpreter.show(value, item.ty)
        return f'"{text.translate(ESCAPES)}"' if item.ty == t.STRING else text


def use(item: term.Def) -> term.Var:
    """A use of a definition that has no type parameters."""
    return term.Var(item.body.span, item.ty, item.name, tuple(t.PURE for _ in item.params))


def interrupt(thread: int) -> None:
    """Raise KeyboardInterrupt in a Python thread."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
