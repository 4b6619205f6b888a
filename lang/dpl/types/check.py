"""trees -> core: the types of a whole program, its standard library included.

let twice x = x + x   ->   Def main.twice ['a e]: 'a -> 'a = fun x -> add(x, x)
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.core import term
from dpl.diagnostics import Diagnostic, DplError, Warnings
from dpl.node import node
from dpl.syntax.load import Module
from dpl.types import activity
from dpl.types.declarations import Item
from dpl.types.env import Exports
from dpl.types.library import Library, library
from dpl.types.module import check_module


@node
class Checked:
    """A program, what to warn of, and what each of its modules offers, with types as inferred."""

    program: term.Program
    warnings: list[Diagnostic]
    exports: dict[str, Exports]


def check_program(modules: Sequence[Module], stdlib: Library | None = None) -> tuple[term.Program, list[Diagnostic]]:
    """Modules in the order in which they run -> the program, and warnings.  Raises all errors at once."""
    checked = check_all(modules, stdlib)
    return checked.program, checked.warnings


def check_all(modules: Sequence[Module], stdlib: Library | None = None) -> Checked:
    std = stdlib or library()
    warnings = Warnings()
    known: dict[str, Exports] = {}
    datas, loud = dict(std.datas), set(std.loud)
    items: list[Item] = []
    problems: list[Diagnostic] = []
    for module in modules:
        public = std.modules | {name: exports.public() for name, exports in known.items()}
        names = std.modules | {alias: public[name] for alias, name in module.imports.items() if name in public}
        made, known[module.name], failures = check_module(
            module.name, module.tree, names, datas, loud, warnings, std.primitives
        )
        items += made
        problems += failures
    if problems:
        raise DplError(*problems)
    program = term.Program(items, std.definitions, datas)
    own = [module.source for module in modules]
    found = [*warnings.diagnostics, *activity.warnings(program, set(own))]
    found.sort(key=lambda d: (own.index(d.span.source), d.span.start) if d.span else (0, 0))
    return Checked(program, found, known)
