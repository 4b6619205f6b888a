"""Syntax trees -> core: infers the types of a whole program, its standard library included.

let twice x = x + x   ->   Def main.twice ['a e]: 'a -> 'a = fun x -> add(x, x)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dpl.core import term
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.node import node, replace
from dpl.syntax.load import Module
from dpl.types.declarations import Item
from dpl.types.library import Library, library
from dpl.types.module import check_module, unstarted
from dpl.types.remembered import Remembered, key, recall, remember
from dpl.types.state.context import Context
from dpl.types.state.env import Exports
from dpl.types.warnings.advice import advice


@node
class Checked:
    """A program in core, its warnings, and the inferred exports of each module."""

    program: term.Program
    warnings: list[Diagnostic]
    exports: dict[str, Exports]


def check_program(modules: Sequence[Module]) -> tuple[term.Program, list[Diagnostic]]:
    """Modules in order of execution -> the program and its warnings.  Raises DplError with all errors at once."""
    checked = check_all(modules)
    return checked.program, checked.warnings


def check_all(modules: Sequence[Module], stdlib: Library | None = None) -> Checked:
    """Modules, imported ones first -> core, warnings and exports.  Raises all errors at once."""
    run = Run(stdlib or library())
    for module in modules:
        run.add(module)
    if run.problems:
        raise DplError(*once(run.problems))
    program = term.Program(run.items, run.library.definitions, run.datas)
    own = [module.source for module in modules]
    found = [*run.warnings, *unstarted(modules[-1].tree.decls if modules else ()), *advice(program, set(own))]
    found.sort(key=lambda d: (own.index(d.span.source), d.span.start) if d.span else (0, 0))
    return Checked(program, found, run.exports)


MISSING = ("E0202", "E0203")


def once(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Reports a missing name once, at its first use, with the number of other uses.  What several calls of a function
    find at one place in it is reported for the first call."""

    def what(d: Diagnostic) -> tuple:
        return d.title, d.span and d.span.source.name

    uses = Counter(what(d) for d in problems if d.code in MISSING and not d.note)
    told: list[Diagnostic] = []
    found = {(d.title, d.span): d for d in reversed(problems)}
    for d in problems:
        if found[d.title, d.span] is not d:
            continue
        if d.code not in MISSING or d.note:
            told.append(d)
        elif more := uses.pop(what(d), 0):
            told.append(replace(d, note=f"and in {more - 1} more place{'s' * (more > 2)}") if more > 1 else d)
    return told


class Run:
    """Checks one program module by module.  A module that has not changed is not checked again."""

    def __init__(self, library: Library, known: dict[str, Remembered] | None = None) -> None:
        self.library = library
        self.known = known if known is not None else {}  # the results of earlier runs, by cache key
        self.datas, self.loud = dict(library.datas), set(library.loud)
        self.items: list[Item] = []
        self.warnings: list[Diagnostic] = []
        self.problems: list[Diagnostic] = []
        self.exports: dict[str, Exports] = {}
        self.modules: dict[str, Module] = {}
        self.contexts: dict[str, Context] = {}
        self.keys: dict[str, str] = {}

    def add(self, module: Module) -> None:
        """Checks a module, or takes its result from the cache."""
        self.modules[module.name] = module
        imported = sorted(f"{alias}={self.keys.get(name, name)}" for alias, name in module.imports.items())
        name = self.keys[module.name] = key(module, imported)
        found = self.known.get(name) or recall(module, name) or self.check(module, name)
        self.items += found.items
        self.warnings += found.warnings
        self.datas.update(found.datas)
        self.loud |= found.loud
        self.exports[module.name] = found.exports

    def check(self, module: Module, name: str) -> Remembered:
        warnings, datas, loud = Warnings(), dict(self.datas), set(self.loud)
        items, cx, failures = self.infer(module, datas, loud, warnings)
        self.contexts[module.name] = cx
        self.problems += failures
        new = {n: data for n, data in datas.items() if n not in self.datas}
        made = Remembered(items, cx.exports(), new, loud - self.loud, warnings.diagnostics)
        if not self.problems:
            self.known[name] = made
            remember(module, name, made)
        return made

    def infer(self, module: Module, datas: dict, loud: set[str], warnings: Warnings):
        std = self.library
        imported = ((alias, self.public(name)) for alias, name in module.imports.items())
        names = std.modules | {alias: exports for alias, exports in imported if exports is not None}
        return check_module(module.name, module.tree, names, datas, loud, warnings, std.primitives, self.home)

    def public(self, name: str) -> Exports | None:
        """What a module of the program or of the library exports; None if there is no such module."""
        exports = self.exports.get(name)
        return self.library.modules.get(name) if exports is None else exports.public()

    def home(self, name: str) -> Context | None:
        """The context of a module, for explaining errors.  A module from the cache is inferred again for this."""
        if name in self.modules and name not in self.contexts:
            _, self.contexts[name], _ = self.infer(self.modules[name], dict(self.datas), set(self.loud), Warnings())
        return self.contexts.get(name)
