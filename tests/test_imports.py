"""No circle of imports: neither between files nor between sub-folders that stand beside each other.

Imports for type hints and those inside functions count as all others do.  What files have to know of each other is
dissolved by one idiom: the lower file owns the class, with the recursive call as a hole; the top file fills the hole.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT
from dplc.graph import components

Arrows = dict[str, dict[str, str]]  # what each imports, and where


@cache
def files() -> dict[str, Path]:
    """All modules, by their names; a package by that of its folder."""
    found = {}
    for base in (Path(ROOT, "lang"), Path(ROOT, "compiler")):
        for path in base.rglob("*.py"):
            found[".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def imported(tree: ast.Module, modules: dict[str, Path]) -> Iterator[tuple[str, int]]:
    """The modules of ours that a file imports, and the lines where it does."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                for name in names:
                    full = f"{module}.{name.name}"
                    yield full if full in modules else module, node.lineno
            case ast.Import(names=names):
                for name in names:
                    yield name.name, node.lineno
            case _:
                pass


@cache
def file_arrows() -> Arrows:
    modules, arrows = files(), {}
    for module, path in modules.items():
        found = arrows[module] = {}
        for other, line in imported(ast.parse(path.read_text(encoding="utf-8")), modules):
            if other in modules and other != module:
                found.setdefault(other, f"{path.relative_to(ROOT)}:{line}")
    return arrows


def folder_arrows() -> Arrows:
    """Between sub-folders of one folder: `dplc.ad.reverse` and `dplc.ad.rules` stand beside each other."""
    arrows: Arrows = {}
    for module, others in file_arrows().items():
        for other, where in others.items():
            here, there = folders(module), folders(other)
            for mine, its in zip(here, there, strict=False):
                if mine != its:
                    arrows.setdefault(mine, {}).setdefault(its, where)
                    arrows.setdefault(its, {})
                    break
    return arrows


def folders(module: str) -> list[str]:
    """The folders around a module, outermost first."""
    parts = module.split(".") if files()[module].name == "__init__.py" else module.split(".")[:-1]
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def circles(arrows: Arrows) -> list[str]:
    """A way from one member of each circle back to itself, an arrow a line."""
    groups = components(arrows, lambda node: arrows.get(node, {}))
    return [way(arrows, min(group), set(group)) for group in groups if len(group) > 1]


def way(arrows: Arrows, start: str, group: set[str]) -> str:
    """The shortest way from `start` back to it, inside its group."""
    before: dict[str, str] = {}
    todo = deque([start])
    while start not in before:
        node = todo.popleft()
        for other in arrows[node]:
            if other in group and other not in before:
                before[other] = node
                todo.append(other)
    steps, node = [], start
    while not steps or node != start:
        steps.append(f"{before[node]} -> {node}   ({arrows[before[node]][node]})")
        node = before[node]
    return "\n".join(reversed(steps))


def tell(found: list[str], what: str) -> None:
    if found:
        pytest.fail(f"these {what} import each other:\n\n" + "\n\n".join(found), pytrace=False)


def test_no_circle_of_files() -> None:
    tell(circles(file_arrows()), "files")


def test_no_circle_of_folders() -> None:
    tell(circles(folder_arrows()), "folders")


def test_a_circle_is_told() -> None:
    arrows: Arrows = {"a": {"b": "a.py:1"}, "b": {"c": "b.py:2"}, "c": {"a": "c.py:3", "d": "c.py:4"}, "d": {}}
    assert circles(arrows) == ["a -> b   (a.py:1)\nb -> c   (b.py:2)\nc -> a   (c.py:3)"]
