"""core program -> its output.

    run(program, args=["data.csv"], out=sys.stdout)

Top-level items run in order.  A definition's value is computed when its turn comes.  Other instances of a generalised
definition, and those of the library, are computed on first use.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import cached_property

from dpl import host
from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.shapes import GlobalNeeds
from dpl.core.values import is_value, uses, variables
from dpl.diagnostics import Bug, DplError
from dpl.eval.code.code import Code, root
from dpl.eval.code.mentioned import names_in
from dpl.eval.code.terms import TermCompiler
from dpl.eval.machine.failure import for_user
from dpl.eval.machine.machine import Machine
from dpl.eval.machine.outside import Outside, ProgramExit, Writable
from dpl.eval.machine.primitives import Surroundings
from dpl.eval.values.datatypes import DataTypes
from dpl.eval.values.instance import MOST, Handed, Types, type_args, type_params
from dpl.eval.values.show import Shower
from dpl.eval.values.value import Value
from dpl.garbage import collected_seldom
from dpl.source import Source, Span

__all__ = ["Interpreter", "ProgramExit", "run"]


class Interpreter:
    """A running program.  The REPL adds items as the user types them.  The debugger and `speculation` have
    parts of their own."""

    MACHINE = Machine
    COMPILER = TermCompiler

    def __init__(self, program: c.Program, args: Sequence[str] = (), out: Writable | None = None) -> None:
        self.program = program
        self.machine = self.MACHINE()
        self.world = Outside(out or sys.stdout, list(args))
        datas = DataTypes(program.datas)
        self.shower = Shower(datas)
        self.types = Types({})
        surroundings = Surroundings(datas, self.shower, self.world, self.machine.call)
        self._compiler = self.COMPILER(self.machine, self._lookup, GlobalNeeds(self._find).of, surroundings)
        self._defs: dict[str, c.Def] = {}
        self._codes: dict[str, Code] = {}
        self._values: dict[tuple, Value] = {}
        self._sized: dict[tuple, Value] = {}  # instances of generalised definitions that depend on sizes
        self._own: set[Source] = set()
        self.add(program.items)

    def add(self, items: Sequence[c.Def | c.Do | c.Expect]) -> None:
        """Register definitions; `item` runs them."""
        for item in items:
            self._own.add(item.body.span.source)
            if isinstance(item, c.Def):
                self._defs[item.name] = item

    def forget(self, names: Collection[str]) -> None:
        """Drop definitions that the program will not use again."""
        for name in names:
            self._defs.pop(name, None)
            self._codes.pop(name, None)
        gone = set(names)
        for values in (self._values, self._sized):
            for key in [key for key in values if key[0] in gone]:  # one for each instance
                del values[key]
        self._compiler.forget()

    def item(self, item: c.Def | c.Do | c.Expect) -> None:
        """Run one item.  An `expect` does nothing here: call `holds`."""
        match item:
            case c.Do(body=body):
                self.value(body)
            case c.Def(name=name, body=body) if (types := self.types_in_turn(item)) is not None:
                try:
                    self._lookup(name, types)
                except DplError as error:
                    raise for_user(error, self._own, tail_of(body)) from None
            case _:  # other instances are made on first use, an expectation is computed by `holds`
                pass

    def types_in_turn(self, item: c.Def) -> tuple[t.Ty, ...] | None:
        """The types at which a definition is computed when its turn comes: if it was generalised, but is more than a
        value, those of its first use.  A value of all types is an error."""
        names = type_params(item.params)
        if not names or isinstance(item.ty, t.Var):
            return (t.UNIT,) * len(names)
        if is_value(item.body) or self._compiler.needs(item.name)[1]:
            return None
        return self._first_uses.get(item.name)

    @cached_property
    def _first_uses(self) -> dict[str, tuple[t.Ty, ...]]:
        """The types at which the program first uses its generalised definitions, as far as they are known."""
        defs = {name: item for name, item in self._defs.items() if item.params}
        found: dict[str, tuple[t.Ty, ...]] = {}
        for use in uses(defs, [item.body for item in self.program.items]):
            if not variables(use.inst):
                found.setdefault(use.name, type_args(defs[use.name].params, use.inst))
        return found

    def holds(self, item: c.Expect) -> bool:
        """True unless an expectation is false."""
        return self.value(item.body) is not False

    def value(self, term: c.Term) -> Value:
        """The value of a closed term at the top level.  Raises DplError for a run-time error."""
        code = self._compiler.top(term, root())
        try:
            return self._finish(code, self.types)
        except DplError as error:
            raise for_user(error, self._own, tail_of(term)) from None

    def show(self, value: Value, ty: t.Ty) -> str:
        """A value as text, abridged where it is long."""
        return self.shower.show(value, ty, abridged=True)

    def _lookup(self, name: str, types: tuple[t.Ty, ...], sizes: Handed = ()) -> Value:
        """The value of a global at closed types, given the sizes that it needs."""
        key, values = (name, types, sizes), self._sized if sizes else self._values
        if key not in values:
            definition = self._definition(name)
            if name not in self._codes:
                self._codes[name] = self._compiler.top(definition.body, root(self._recursion(definition)))
            inside = self.types.extend(type_params(definition.params), types, sizes)
            if len(self._sized) >= MOST:
                self._sized.clear()
            values[key] = self._finish(self._codes[name], inside)
        return values[key]

    def _recursion(self, item: c.Def) -> set[str]:
        """The functions of a group that lead to this one: calls of them from here may be a loop."""
        mentioned = {name: names_in(self._definition(name).body) for name in item.group}
        found = {item.name} & mentioned.keys()
        while more := {name for name, names in mentioned.items() if name not in found and found & names}:
            found |= more
        return found

    def _find(self, name: str) -> c.Def | None:
        return self._defs.get(name) or self.program.library.get(name)

    def _definition(self, name: str) -> c.Def:
        definition = self._find(name)
        if definition is None:
            raise Bug(f"no definition of `{name}`")
        return definition

    def _finish(self, code: Code, types: Types) -> Value:
        return self.machine.finish(code.run, (types,), self.machine.end)


def tail_of(body: c.Term) -> Span:
    """The place of what a computation does last: a tail call leaves no frame that tells it."""
    while isinstance(body, (c.Let, c.LetRec)):
        body = body.body
    return body.span


def run(program: c.Program, *, args: Sequence[str] = (), out: Writable | None = None,
        engine: type[Interpreter] = Interpreter) -> None:  # fmt: skip
    """Run a program.  Raises DplError for a run-time error and ProgramExit when the program calls `exit`.  Its output
    is flushed in every case."""
    interpreter = engine(program, args, out)
    try:
        with collected_seldom():
            for item in program.items:
                interpreter.item(item)
    except ProgramExit as stop:
        host.current.ending(stop.code)
        raise
    except DplError:
        host.current.ending(1)
        raise
    finally:
        interpreter.world.close()
