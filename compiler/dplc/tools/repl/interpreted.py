"""The engine of a session that runs its declarations in the interpreter."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Collection, Mapping, Sequence

from dpl.core import term
from dpl.core import ty as t
from dpl.eval.run import Interpreter
from dpl.eval.values.show import ESCAPES
from dpl.source import NOWHERE
from dpl.types.declarations import Item

from dplc.stack import on_large_stack

Told = tuple[str, term.Def | None]  # the text for a new name, and the definition whose value follows, if any


PICTURE = t.Con("Plot.picture")


class Interpreted:
    def __init__(self, program: term.Program) -> None:
        self.interpreter = Interpreter(program, out=sys.stdout)

    def run(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        """Run items and print what is `told` of them.  Raises DplError, ProgramExit, or KeyboardInterrupt."""
        self.interpreter.add(items)
        on_large_stack(lambda: self.work(items, told), interrupt)

    def forget(self, names: Collection[str]) -> None:
        """Drop definitions that are no longer reachable."""
        self.interpreter.forget(names)

    def work(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        for item in items:
            self.interpreter.item(item)
        for text, item in told:
            print(text if item is None else self.shown(text, item), flush=True)

    def shown(self, text: str, item: term.Def) -> str:
        """The text for a name with its value: a picture below it, any other value behind it."""
        if item.ty == PICTURE:
            return f"{text}\n{self.interpreter.value(drawn(self.interpreter.program.library, use(item)))}".rstrip("\n")
        return f"{text} = {self.written(item)}"

    def written(self, item: term.Def) -> str:
        value = self.interpreter.value(use(item))
        text = self.interpreter.show(value, item.ty)
        return f'"{text.translate(ESCAPES)}"' if item.ty == t.STRING else text


def drawn(library: Mapping[str, term.Def], picture: term.Term) -> term.Term:
    """A term for the text of a picture: the rows of characters for a terminal."""
    return term.App(NOWHERE, t.STRING, use(library["Plot.text"]), picture)


def use(item: term.Def) -> term.Var:
    """A use of a definition that has no type parameters."""
    return term.Var(item.body.span, item.ty, item.name, tuple(t.PURE for _ in item.params))


def interrupt(thread: int) -> None:
    """Raise KeyboardInterrupt in a Python thread."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
