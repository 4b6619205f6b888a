"""A module's tree -> its core and what it offers."""

from __future__ import annotations

from collections.abc import Callable

from dpl.diagnostics import Diagnostic, Warnings
from dpl.syntax import tree
from dpl.types import arrays, bindings, expressions  # noqa: F401  (they register their rules)
from dpl.types.context import Context
from dpl.types.declarations import Item
from dpl.types.declarations import Module as Checker
from dpl.types.env import Exports


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
    """A module's core, the context with everything that it declares, and its errors; `modules` are those it can name,
    `homes` gives the contexts of others."""
    cx = Context(name, modules, datas, warnings, primitives)
    cx.loud, cx.homes = loud, homes
    checker = Checker(cx)
    for decl in file.decls:
        checker.declare(decl)
    items = checker.finish()
    return items, cx, once(sorted(checker.problems, key=lambda d: d.span.start if d.span else 0))


def once(problems: list[Diagnostic]) -> list[Diagnostic]:
    """A module that is not in scope is missed at its first use."""
    missed = {d.title: d for d in reversed(problems) if d.code == "E0560"}
    return [d for d in problems if missed.get(d.title, d) is d]
