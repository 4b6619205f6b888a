"""The engine of a session that compiles its declarations to native code.

    let y = f x      =>      let x = recall "main.x"      (from an earlier input; functions are compiled again)
                             let y = f x
                             do keep "main.y" y
                             do print y

Values that hold functions are not kept: each input that uses them computes them again.  If that would be observable,
because computing them makes references or prints, the session continues in the interpreter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dpl.core import term as c
from dpl.core import ty as t
from dpl.core.names import mentioned
from dpl.core.walk import subterms
from dpl.eval.machine.outside import ProgramExit
from dpl.eval.values.instance import erase
from dpl.node import node, replace
from dpl.source import NOWHERE
from dpl.types.declarations import Item

from dplc.flat import term as f
from dplc.flat.walk import every
from dplc.machine.emit.module.layout import counted
from dplc.passes import NeedsInterpreter
from dplc.stack import on_large_stack
from dplc.tools.repl.interpreted import PICTURE, Drawing, Restless, Told, use

if TYPE_CHECKING:
    from dplc.machine.run.execute import Loaded
    from dplc.machine.run.session_units import SessionUnit

ANY = "picture"  # the cell of the picture to draw
NOTICED = frozenset({
    "print", "print_string", "ref", "assign", "deref", "read_text", "write_text", "read_bytes", "write_bytes", "time",
    "progress", "exit", "read_line",
})  # fmt: skip


@node
class Spare:
    """The cell of a value that is no longer needed, and the loaded code whose constants the value may hold."""

    ty: t.Ty
    cell: ctypes.Array
    loaded: frozenset[Loaded]


class Native:
    def __init__(self, program: c.Program, drawing: Drawing) -> None:
        from dplc.machine.run.session_units import SessionUnits

        self.program = program
        self.drawing = drawing
        self.defs: dict[str, c.Def] = {}
        self.kept: dict[str, frozenset[Loaded]] = {}  # values, and the code whose constants they may hold
        self.spare: list[Spare] = []
        self.units = SessionUnits()
        self.drawer: SessionUnit | None = None  # the code that draws pictures

    def run(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        """Run items and print what is `told` of them, pictures last.  Raises DplError, ProgramExit, KeyboardInterrupt,
        Restless."""
        new = {item.name: item for item in items if isinstance(item, c.Def)}
        self.defs |= new
        recalled = self.needed(items)
        whole = [*recalled, *items]
        kept = [item for item in new.values() if self.is_kept(item)]
        known: frozenset[Loaded] = frozenset().union(*(self.kept.get(item.name, ()) for item in recalled))
        whole += [c.Do(prim(item, t.UNIT, "keep", name_of(item), use(item))) for item in kept]
        pictures = [(text, item) for text, item in told if item and item.ty == PICTURE]
        quote = self.program.library["String.quoted"]
        whole += [do for text, item in told[: len(told) - len(pictures)] for do in telling(text, item, quote)]
        if all(is_function(item) for item in items) and not any(item for _, item in told):
            for text, _ in told:  # nothing to run: functions are compiled with their uses
                print(text, flush=True)
            return
        program = to_memory(self.part(whole))
        unit = self.units.compile(program)
        with self.cells_for(kept):
            loaded = self.units.load(unit)
            reached = known | {loaded}
            if assigns(program):
                self.kept |= {name: was | reached for name, was in self.kept.items() if self.refers(self.defs[name].ty)}
            self.perform(unit, loaded)
        self.kept |= {item.name: frozenset() if is_plain(item.ty) else reached for item in kept}
        for text, item in pictures:
            print(text)
            self.draw(item)

    def part(self, items: Sequence[Item]) -> c.Program:
        return c.Program(list(items), self.program.library, self.program.datas)

    @contextmanager
    def cells_for(self, items: Sequence[c.Def]) -> Generator[None]:
        """Give values the spare cells of their types, inside a `with`.  Running the code then drops the old values.  If
        the body fails, the cells become spare again."""
        cells, taken = self.units.cells, []
        for item in items:
            ty = erase(item.ty)
            found = next((spare for spare in self.spare if spare.ty == ty), None)
            if found:
                self.spare.remove(found)
                taken.append(found)
                cells[cell_of(item.name)] = found.cell
        try:
            yield
        except BaseException:
            self.spare += taken
            for item in items:
                cells.pop(cell_of(item.name), None)
            raise

    def forget(self, names: Collection[str]) -> None:
        """Drop definitions that are no longer reachable; their cells become spare."""
        for name in names:
            item = self.defs.pop(name, None)
            cell = self.units.cells.pop(cell_of(name), None)
            loaded = self.kept.pop(name, frozenset())
            if item and cell is not None:
                self.spare.append(Spare(erase(item.ty), cell, loaded))

    def perform(self, unit: SessionUnit, loaded: Loaded) -> None:
        from dplc.machine.run.session_units import Exit

        try:
            self.units.run(unit, loaded)
        except Exit as stop:
            raise ProgramExit(stop.code) from None

    def draw(self, picture: c.Def) -> None:
        """Draw a picture.  The code is compiled once, for the cell ANY, which is replaced by the picture's cell."""

        def program():
            name = c.Lit(NOWHERE, t.STRING, ANY)
            text = self.drawing.text(self.program.library, c.Prim(NOWHERE, PICTURE, "recall", (name,)))
            return to_memory(self.part([c.Do(c.Prim(NOWHERE, t.UNIT, "print_string", (text,)))]))

        if self.drawer is None:
            self.drawer = self.units.compile_once(f"drawing by {self.drawing.function}", program)
        with self.drawing.around():
            self.perform(self.drawer, self.units.load(self.drawer, {cell_of(ANY): cell_of(picture.name)}))

    def needed(self, items: Sequence[Item]) -> list[c.Def]:
        """The earlier definitions that items use, directly or not, in order; those with kept values recall them."""
        found: set[str] = set()
        own = {item.name for item in items if isinstance(item, c.Def)}
        todo = [name for item in items for name in mentioned(item.body)]
        while todo:
            name = todo.pop()
            if name in self.defs and name not in found and name not in own:
                found.add(name)
                if name not in self.kept:
                    self.must_be_quiet(self.defs[name])
                    todo += mentioned(self.defs[name].body)
        return [
            replace(item, body=prim(item, item.ty, "recall", name_of(item))) if name in self.kept else item
            for name, item in self.defs.items()
            if name in found
        ]

    def is_kept(self, item: c.Def) -> bool:
        return not is_function(item) and not any(p.sort == "type" for p in item.params) and not self.applies(item.ty)

    def applies(self, ty: t.Ty) -> bool:
        """True if a value of this type may hold functions."""
        return self.holds(ty, lambda part: isinstance(part, t.Fn))

    def refers(self, ty: t.Ty) -> bool:
        """True if a value of this type may hold references whose contents may be constants of some code."""
        return self.holds(ty, is_reference_to_blocks)

    def holds(self, ty: t.Ty, wanted: Callable[[t.Ty], bool], inside: tuple[str, ...] = ()) -> bool:
        """True if a value of this type may have parts of a `wanted` type."""
        if wanted(ty):
            return True
        match ty:
            case t.Tup(items):
                return any(self.holds(item, wanted, inside) for item in items)
            case t.Arr(elem, _):
                return self.holds(elem, wanted, inside)
            case t.Con(name, args):
                if any(self.holds(a, wanted, inside) for a in args if not isinstance(a, t.Size)):
                    return True
                data = self.program.datas.get(name)
                if data is None or name in inside:
                    return False
                return any(ty is not None and self.holds(ty, wanted, (*inside, name)) for _, ty in data.cases)
            case _:
                return False

    def must_be_quiet(self, item: c.Def) -> None:
        """Raises Restless if computing a value again would be observable."""
        if is_function(item):
            return
        seen: set[str] = set()
        todo: list[c.Term] = [item.body]
        while todo:
            e = todo.pop()
            if isinstance(e, c.Prim) and e.op in NOTICED:
                name = item.name.removeprefix("main.").partition("#")[0]
                raise Restless(f"`{name}` holds functions, and things happen when it is made")
            todo += subterms(e)
            if isinstance(e, c.Var) and e.name not in seen:
                seen.add(e.name)
                known = self.defs.get(e.name) or self.program.library.get(e.name)
                if known is not None and known.name not in self.kept:
                    todo.append(known.body)


def to_memory(program: c.Program):
    """The stages from core to reference counts.  Raises Restless."""
    from dplc.pipeline import Context, compile_from

    try:
        return on_large_stack(lambda: compile_from("check", program, "reference_counts", Context()))[1]
    except NeedsInterpreter as need:
        raise Restless(need.reason) from None


def assigns(program: f.Program) -> bool:
    """True if the program assigns counted values to references: these may be constants of its code, or parts of earlier
    values."""
    rhss = (bind.rhs for fn in program.fns.values() for bind in every(fn.body))
    return any(isinstance(rhs, f.Op) and rhs.op == "ref_set" and counted(rhs.args[1].ty) for rhs in rhss)


def is_plain(ty: t.Ty) -> bool:
    """True if values of this type lie entirely in their cells, without pointers."""
    match ty:
        case t.Tup(items):
            return all(map(is_plain, items))
        case t.Con(name):
            return name in (*t.INTS, *t.FLOATS, "bool")
        case _:
            return False


def is_reference_to_blocks(ty: t.Ty) -> bool:
    match ty:
        case t.Con("ref", (content,)):
            return isinstance(content, t.Size) or not is_plain(content)
        case _:
            return False


def cell_of(name: str) -> str:
    return f"state {name}"


def is_function(item: Item) -> bool:
    return isinstance(item, c.Def) and isinstance(item.body, c.Lam)


def name_of(item: c.Def) -> c.Lit:
    return c.Lit(item.body.span, t.STRING, item.name)


def prim(item: c.Def, ty: t.Ty, name: str, *args: c.Term) -> c.Prim:
    return c.Prim(item.body.span, ty, name, args)


def telling(text: str, item: c.Def | None, quote: c.Def) -> Iterator[c.Do]:
    def printed(op: str, value: c.Term) -> c.Do:
        return c.Do(c.Prim(NOWHERE, t.UNIT, op, (value,)))

    def literal(text: str) -> c.Lit:
        return c.Lit(NOWHERE, t.STRING, text)

    if item is None:
        yield printed("print", literal(text))
    else:
        value = use(item)
        yield printed("print_string", literal(f"{text} = "))
        yield printed("print", c.App(NOWHERE, t.STRING, use(quote), value) if item.ty == t.STRING else value)
