"""Incremental checking for the REPL: declarations are checked as they come; those with errors change nothing.

session.add(load("let f x = x + 1"))   ->   [Def main.f]        f : int -> int
session.add(load("let f = 2"))         ->   [Def main.f#2]      users of the first f go on using that one
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dpl.core import term
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.syntax import tree
from dpl.syntax.load import MAIN, Module
from dpl.types.check import Run
from dpl.types.declarations import Item
from dpl.types.declarations import Module as Checker
from dpl.types.library import library
from dpl.types.solve.scheme import Scheme
from dpl.types.state.context import Context
from dpl.types.state.env import Exports, Value


class Session:
    """`new` and `warnings` describe the last declarations.  `forget` undoes these; `settle` makes them permanent."""

    def __init__(self) -> None:
        self.run = Run(library())  # checks the imported modules
        self.warnings: list[Diagnostic] = []
        self.new = Exports()  # the latest declarations
        std = self.run.library
        self.cx = Context(MAIN, dict(std.modules), self.run.datas, Warnings(), std.primitives)
        self.cx.loud, self.cx.homes = self.run.loud, self.run.home
        self.checker = Checker(self.cx)

    def add(self, modules: Sequence[Module]) -> list[Item]:
        """Checks declarations (the last of `modules`), and the imported modules that are new; returns their core.

        Raises DplError, and then leaves the session as it was."""
        *imported, own = modules
        before = len(self.run.items)
        for module in imported:
            self.run.add(module)
        if self.run.problems:
            problems, self.run.problems = self.run.problems, []
            raise DplError(*problems)
        for alias, name in own.imports.items():
            if (exports := self.run.public(name)) is not None:
                self.cx.modules[alias] = exports
        return [*self.run.items[before:], *self.check(own)]

    def check(self, module: Module) -> list[Item]:
        """The items of a module's declarations.  One with an error leaves nothing behind."""
        cx, checker = self.cx, self.checker
        cx.warnings = Warnings()
        kept, before = self.state(), cx.owned
        cx.owned = []
        cx.new_layer()
        for decl in module.tree.decls:
            checker.declare(decl)
        items = checker.finish()
        problems, checker.unfinished = checker.problems, []
        self.warnings = cx.warnings.diagnostics
        self.new, cx.owned = cx.exports(), before + cx.owned
        if problems:
            self.forget(*kept)
            raise DplError(*sorted(problems, key=lambda d: d.span.start if d.span else 0))
        return items

    def settle(self) -> None:
        """Merges the last layer of declarations into the one below, so that lookups do not pass a layer per input."""
        cx = self.cx
        if len(cx.owned) > 1 and cx.layers[-2:] == cx.owned[-2:]:
            last = cx.owned.pop()
            cx.layers.pop()
            cx.own = cx.owned[-1]
            for kind in ("values", "types", "constructors", "fields"):
                getattr(cx.own, kind).update(getattr(last, kind))

    def release(self, names: Collection[str]) -> None:
        """Drops definitions, by core name, that nothing mentions any more."""
        cx = self.cx
        for name in names:
            cx.definitions.pop(name, None)
            cx.captures.pop(name, None)
        for meanings in cx.history.values():
            meanings[:] = [(since, e) for since, e in meanings if not (isinstance(e, Value) and e.name in names)]

    def type_of(self, expr: tree.Expr) -> Scheme:
        """The type of an expression.  The session stays as it was."""
        kept = self.state()
        binding = tree.Binding(expr.span, tree.PatVar(expr.span, "it"), (), None, expr)
        decl = tree.DeclLet(expr.span, False, (binding,))
        self.check(Module(MAIN, expr.span.source, tree.File(expr.span, (decl,), ())))
        found = self.new.values["it"]
        self.forget(*kept)
        assert isinstance(found, Value)
        return found.scheme

    def state(self) -> tuple:
        """The state that `forget` restores."""
        cx = self.cx
        return list(cx.layers), list(cx.owned), dict(cx.datas), dict(cx.fields), dict(cx.constructors)

    def forget(self, layers: list, owned: list, datas: dict, fields: dict, constructors: dict) -> None:
        """Restores a saved state, even in the middle of an interrupted check."""
        cx = self.cx
        cx.layers[:], cx.owned, cx.own = layers, owned, owned[-1]
        for now, then in ((cx.datas, datas), (cx.fields, fields), (cx.constructors, constructors)):
            now.clear()
            now.update(then)
        self.checker.problems, self.checker.unfinished = [], []

    @property
    def datas(self) -> dict[str, term.Data]:
        return self.cx.datas

    def exports(self) -> Exports:
        """All declarations; for each name, the latest."""
        return self.cx.exports()
