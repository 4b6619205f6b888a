"""A module's syntax tree -> its core and its exports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from dpl.diagnostics import Diagnostic, Label, Warnings
from dpl.source import Span
from dpl.syntax import tree
from dpl.types.declarations import Item, bound_names
from dpl.types.declarations import Module as Checker
from dpl.types.state.context import Context
from dpl.types.state.env import Exports


def check_module(
    name: str,
    file: tree.File,
    modules: dict[str, Exports],
    datas: dict,
    loud: set[str],
    warnings: Warnings,
    primitives: Exports,
    homes: Callable[[str], Context | None] = lambda name: None,
) -> tuple[list[Item], Context, list[Diagnostic]]:
    """Checks a module.  Returns its core, its context with everything that it declares, and its errors.

    `modules` are the modules that it can name; `homes` returns the contexts of other modules."""
    cx = Context(name, modules, datas, warnings, primitives)
    cx.loud, cx.homes, cx.ahead = loud, homes, declared(file)
    checker = Checker(cx)
    for decl in file.decls:
        checker.declare(decl)
    items = checker.finish()
    problems = [*checker.problems, *hidden_exports(file.decls)]
    return items, cx, once(sorted(problems, key=lambda d: d.span.start if d.span else 0))


def declared(file: tree.File) -> dict[tuple[str, str], Span]:
    """The first declaration of each kind and name in a file."""
    found: dict[tuple[str, str], Span] = {}
    for decl in file.decls:
        match decl:
            case tree.DeclLet(_, _, bound):
                for b in bound:
                    for name in bound_names(b.pattern):
                        found.setdefault(("value", name), b.pattern.span)
            case tree.DeclType(defs=defs):
                for d in defs:
                    found.setdefault(("type", d.name), d.span)
                    kind = "constructor" if isinstance(d.body, tree.Variants) else "field"
                    for name, _, span in parts(d.body):
                        found.setdefault((kind, name), span)
            case _:
                pass
    return found


def hidden_exports(decls: Iterable[tree.Decl]) -> Iterator[Diagnostic]:
    """Errors for definitions that hide one which is exported: C and Python would miss it."""
    exported: dict[str, Span] = {}
    for decl in decls:
        if isinstance(decl, tree.DeclLet):
            spans = {name: b.pattern.span for b in decl.bindings for name in bound_names(b.pattern)}
            for name in sorted(spans.keys() & exported.keys()):
                labels = (Label(exported[name], f"`{name}` is exported here"),)
                yield Diagnostic("E0215", f"this hides `{name}`, which is exported", spans[name], labels=labels)
            exported |= spans if decl.export else {}


def unstarted(decls: Iterable[tree.Decl]) -> Iterator[Diagnostic]:
    """The warning for a program that only defines, and has a function `main` that waits to be called."""
    found: Span | None = None
    for decl in decls:
        if isinstance(decl, tree.DeclDo | tree.DeclExpect) or (isinstance(decl, tree.DeclLet) and decl.export):
            return
        for b in decl.bindings if isinstance(decl, tree.DeclLet) else ():
            if b.params and bound_names(b.pattern) == ["main"]:
                found = b.pattern.span
    if found is not None and len(re.findall(r"\bmain\b", found.source.text)) == 1:
        title = "nothing calls `main`, and this program does nothing else"
        yield Diagnostic("W0213", title, found, helps=("a program is run from its top to its end:  do main ()",))


def parts(body: tree.Node) -> tuple[tuple[str, tree.Type | None, Span], ...]:
    """The constructors or fields of a declared type."""
    match body:
        case tree.Variants(_, cases):
            return cases
        case tree.Fields(_, fields):
            return fields
        case _:
            return ()


def once(problems: list[Diagnostic]) -> list[Diagnostic]:
    """Reports a module that is not in scope only once, at its first use."""
    missed = {d.title: d for d in reversed(problems) if d.code == "E0560"}
    return [d for d in problems if missed.get(d.title, d) is d]
