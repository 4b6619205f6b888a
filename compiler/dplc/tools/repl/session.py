"""The declarations so far, and the evaluation of the next input.

session.enter("let x = 1")      prints  x : int = 1
session.enter("x + 1")          prints  it : int = 2
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dpl.core import term
from dpl.core import ty as t
from dpl.core.names import mentioned
from dpl.diagnostics import Diagnostic, DplError
from dpl.eval.machine.outside import ProgramExit
from dpl.source import Source
from dpl.syntax import tree
from dpl.syntax.load import MAIN, Loader, Module, read
from dpl.syntax.parse import parse_expr
from dpl.types.declarations import Item
from dpl.types.messages.pretty import show, show_scheme
from dpl.types.session import Session as Types
from dpl.types.state.env import Entry, Value

from dplc.stack import on_large_stack
from dplc.tools.process import internal
from dplc.tools.repl.inputs import IT, declarations, declared
from dplc.tools.repl.interpreted import PICTURE, Drawing, Interpreted, Restless, Told, interrupt
from dplc.tools.repl.native import Native
from dplc.tools.report import report, warn

ENGINES = {"native": Native, "interp": Interpreted}
SELDOM = 16  # `forget` runs after a number of new inputs that is a sixteenth of the number of names


class Session:
    WORD = re.compile(r"[\w'.]+")

    def __init__(self, engine: str, drawing: Drawing | None = None) -> None:
        self.engine_name = engine
        self.drawing = drawing or Drawing()
        self.file: Path | None = None  # the file loaded last
        self.clear()

    def clear(self) -> None:
        """Start again with nothing declared and nothing loaded."""
        self.types = Types()
        self.loader = Loader(())
        self.program = term.Program([], self.types.run.library.definitions, self.types.datas)
        self.engine = self.new_engine()
        self.inputs = 0
        self.mentions: dict[str, frozenset[str]] = {}  # by definition
        self.fresh, self.lasting = 0, 0  # inputs since `forget`, and names that it left

    def new_engine(self) -> Interpreted | Native:
        return ENGINES[self.engine_name](self.program, self.drawing)

    def change_engine(self, name: str, new: int = 0) -> None:
        """Change to another engine, which runs the definitions so far again, but not the `do`s and expressions, nor the
        last `new` items of the program."""
        self.engine_name = name
        self.engine = self.new_engine()
        before = self.program.items[: len(self.program.items) - new]
        self.engine.run([item for item in before if isinstance(item, term.Def)], ())

    def enter(self, text: str, name: str = "") -> bool:
        """Run an input and print its results or errors; messages call it by its number or by `name`.  Returns true if
        it had no errors."""
        self.inputs += 1
        return self.attempt(lambda: self.do(Source(name or f"<{self.inputs}>", text)))

    def load(self, file: Path) -> bool:
        """Run the declarations of a file, and remember it if it can be read.  Returns true if there were no errors."""

        def work() -> None:
            source = read(file)
            self.file = file
            self.do(source)

        return self.attempt(work)

    def reload(self, file: Path) -> bool:
        """Start again with a file.  If it has errors, the session stays as it was.  Returns true if it had none."""
        before = vars(self).copy()
        self.clear()
        right = self.load(file)
        if not right:
            vars(self).update(before)
        return right

    def attempt(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except ProgramExit:
            raise
        except (Exception, KeyboardInterrupt) as failure:
            self.tell(failure)
            return False
        return True

    def tell(self, failure: Exception | KeyboardInterrupt) -> None:
        """Report the failure of an input.  A bug in DPL does not end the session."""
        match failure:
            case DplError():
                report(failure.diagnostics)
            case KeyboardInterrupt():
                print("\ninterrupted" if sys.stdin.isatty() else "interrupted", file=sys.stderr)  # below the `^C`
            case MemoryError():
                report([Diagnostic("R0802", "out of memory")])
            case Exception():
                internal(failure)

    def do(self, source: Source) -> None:
        self.perform(lambda: self.check(source))

    def save(self, text: str, path: Path) -> None:
        """Write the picture that is the value of an expression to a file."""
        expr = parse_expr(Source("<save>", text))
        at = expr.span
        writer = tree.App(at, tree.Var(at, "Plot.save"), tree.Lit(at, str(path)))
        file = tree.File(at, (tree.DeclDo(at, tree.App(at, writer, expr)),), ())
        self.perform(lambda: ([], self.types.add([Module(MAIN, at.source, file)])))

    def perform(self, check: Callable[[], tuple[Sequence[str], list[Item]]]) -> None:
        """Check and run declarations; `check` also returns the names to tell of.  If either fails, they are removed
        again."""
        kept, before = self.types.state(), len(self.program.items)
        try:
            names, items = on_large_stack(check, interrupt)
            warn(self.types.warnings)
            self.program.items += items
            self.run(items, sorted(self.told(names, items), key=is_picture))
        except BaseException:  # a name without a value must not remain
            self.types.forget(*kept)
            del self.program.items[before:]
            raise
        self.types.settle()
        self.fresh += 1
        if self.fresh > self.lasting // SELDOM:
            self.forget()

    def forget(self) -> None:
        """Drop items that have run, and definitions that are no longer reachable because others took their names.  This
        scans all definitions, so it runs less often the more there are: sessions take linear time."""
        defs = {item.name: item for item in self.program.items if isinstance(item, term.Def)}
        todo = [entry.name for entry in self.types.exports().values.values() if isinstance(entry, Value)]
        todo += [name for name in defs if not name.startswith("main.")]
        found: set[str] = set()
        while todo:
            name = todo.pop()
            if name in defs and name not in found:
                found.add(name)
                if name not in self.mentions:
                    self.mentions[name] = frozenset(mentioned(defs[name].body))
                todo += self.mentions[name]
        gone = defs.keys() - found
        for name in gone:
            self.mentions.pop(name, None)
        self.program.items[:] = [defs[name] for name in defs if name in found]
        self.fresh, self.lasting = 0, len(self.types.exports().values)
        self.types.release(gone)
        self.engine.forget(gone)

    def check(self, source: Source) -> tuple[Sequence[str], list[Item]]:
        file, is_expression = declarations(source)
        if is_expression:
            modules: Sequence[Module] = [Module(MAIN, source, file)]
        else:
            modules = self.loader.load(source)
        return declared(file), self.types.add(modules)

    def run(self, items: Sequence[Item], told: Sequence[Told]) -> None:
        try:
            self.engine.run(items, told)
        except Restless as found:
            print(f"{found}: the session goes on in the interpreter", file=sys.stderr)
            self.change_engine("interp", len(items))
            self.engine.run(items, told)

    def told(self, names: Sequence[str], items: Sequence[Item]) -> Iterator[Told]:
        """The texts for new names, with the definitions whose values are shown: no functions, units or polymorphic
        values."""
        made = {item.name: item for item in items if isinstance(item, term.Def)}
        for name in names:
            value = self.types.new.values.get(name)
            if isinstance(value, Value) and (name, value.scheme.ty) != (IT, t.UNIT):
                item = made.get(value.name)
                said = f"{name if name[0].isalpha() or name[0] == '_' else f'( {name} )'} : {show_scheme(value.scheme)}"
                yield said, item if item is not None and is_shown(item) else None

    @contextmanager
    def foreseen(self, inputs: Sequence[str]) -> Generator[None]:
        """The session as it will be when inputs have run, as far as names and types go."""
        kept = self.types.state()
        for text in inputs:
            with suppress(DplError):
                file, is_expression = declarations(Source("", text))
                if not is_expression and not any(isinstance(decl, tree.DeclImport) for decl in file.decls):
                    on_large_stack(lambda file=file: self.types.check(Module(MAIN, file.span.source, file)))
        try:
            yield
        finally:
            self.types.forget(*kept)

    # ---- names ------------------------------------------------------------------------------------------------------

    def type_of(self, text: str) -> str:
        """The type of an expression; the session does not change.  Raises DplError."""
        expr = parse_expr(Source("<type>", text))
        return show_scheme(self.types.type_of(expr))

    def entry(self, name: str) -> Entry | None:
        """The entry of a value or an operator, perhaps qualified by a module; None if there is none."""
        owner, dot, last = name.rpartition(".")
        if dot and owner:
            found = self.names(owner).get(last)
            return None if isinstance(found, str) else found
        layers = [layer.values[name] for layer in self.types.cx.layers if name in layer.values]
        return layers[-1] if layers else None

    def names(self, owner: str | None) -> dict[str, Entry | str]:
        """The completions after `owner.`, with types: the names of a module or the fields of a value; for None, the
        names in scope."""
        cx = self.types.cx
        if owner is None:
            scope: dict[str, Entry | str] = dict.fromkeys(cx.modules, "module")
            for layer in cx.layers:
                scope.update({name: entry for name, entry in layer.values.items() if name[0].isalpha()})
            return scope
        if owner in cx.modules:
            return dict(cx.modules[owner].values)
        return {name: show(ty) for name, ty in self.fields(self.type_behind(owner)).items()}

    def type_behind(self, path: str) -> t.Ty | None:
        """The type of a value or of a field of one: `p`, `Model.start.w`.  None if unknown."""
        first, *rest = path.split(".")
        found = (
            self.types.cx.modules[first].values.get(rest.pop(0)) if first in self.types.cx.modules and rest else None
        )
        found = found or self.names(None).get(first)
        ty = found.scheme.ty if isinstance(found, Value) else None
        for field in rest:
            ty = self.fields(ty).get(field)
        return ty

    def fields(self, ty: t.Ty | None) -> dict[str, t.Ty]:
        """The fields of a record type with their types; empty for other types."""
        data = self.types.cx.datas.get(ty.name) if isinstance(ty, t.Con) else None
        if not isinstance(ty, t.Con) or data is None or not data.fields:
            return {}
        part = data.cases[0][1]
        parts = part.items if isinstance(part, t.Tup) and len(data.fields) > 1 else (part,)
        at = {param.name: arg for param, arg in zip(data.params, ty.args, strict=False)}
        return {name: t.substitute(one, at) for name, one in zip(data.fields, parts, strict=False) if one is not None}


def is_picture(told: Told) -> bool:
    """True for pictures: they are shown last, because they take many rows."""
    return told[1] is not None and told[1].ty == PICTURE


def is_shown(item: term.Def) -> bool:
    return not isinstance(item.ty, t.Fn) and item.ty != t.UNIT and not any(p.sort == "type" for p in item.params)
