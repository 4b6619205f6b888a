"""trees -> core: the types of a whole program, its standard library included.

    let twice x = x + x   ->   Def main.twice ['a e]: 'a -> 'a = fun x -> add(x, x)
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.core import term
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.syntax import tree
from dpl.syntax.load import Module
from dpl.types import arrays, bindings, expressions  # noqa: F401  (they register their rules)
from dpl.types.context import Context
from dpl.types.declarations import Item
from dpl.types.declarations import Module as Checker
from dpl.types.env import Exports
from dpl.types.library import Library, library


def check_program(modules: Sequence[Module], stdlib: Library | None = None) -> tuple[term.Program, list[Diagnostic]]:
    """Modules in the order in which they run -> the program, and warnings.  Raises all errors at once."""
    std = stdlib or library()
    warnings = Warnings()
    known = dict(std.modules)
    datas = dict(std.datas)
    program = term.Program([], std.definitions, datas)
    problems: list[Diagnostic] = []
    for module in modules:
        names = {**std.modules, **{alias: known[name] for alias, name in module.imports.items() if name in known}}
        items, exports, failures = check_module(module.name, module.tree, names, datas, std.loud, warnings, std.primitives)
        known[module.name] = exports.public()
        program.items += items
        problems += failures
    if problems:
        raise DplError(*problems)
    return program, warnings.diagnostics


def check_module(
    name: str, file: tree.File, modules: dict[str, Exports], datas: dict, loud: set[str], warnings: Warnings, primitives: Exports
) -> tuple[list[Item], Exports, list[Diagnostic]]:
    cx = Context(name, modules, datas, warnings, primitives)
    cx.loud = loud
    checker = Checker(cx)
    for decl in file.decls:
        checker.declare(decl)
    return checker.finish(), cx.own, sorted(checker.problems, key=lambda d: d.span.start if d.span else 0)
