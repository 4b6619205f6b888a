"""`dpl check`: checks programs without running them, and prints their types."""

from __future__ import annotations

import sys
from pathlib import Path

from dpl.core.term import Check, Program
from dpl.core.walk import subterms
from dpl.diagnostics import DplError
from dpl.syntax.load import load
from dpl.types.check import check_all
from dpl.types.messages.pretty import show_scheme
from dpl.types.state.env import Exports, Value
from dpl.types.warnings.advice import advice_without_running

from dplc.passes.entry.exports import exports
from dplc.stack import on_large_stack
from dplc.tools.report import report, warn
from dplc.tools.run import STDIN, text_of


def check_files(paths: list[str], types: bool, size_checks: bool) -> int:
    """Check files and folders.  Returns exit code 1 if a program has errors or if there are none."""
    files = [file for path in paths for file in programs(path)]
    if not files:
        print("no programs found", file=sys.stderr)
    return max((on_large_stack(lambda f=f: check_file(f, types, size_checks)) for f in files), default=1)


def programs(path: str) -> list[str]:
    """The programs in a folder, or the path itself for a file or standard input."""
    folder = Path(path)
    return [str(file) for file in sorted(folder.rglob("*.dp"))] if path != STDIN and folder.is_dir() else [path]


def check_file(file: str, types: bool, size_checks: bool) -> int:
    try:
        modules = load(text_of(file, None))
        checked = check_all(modules)
        exports(checked)
        warn([*checked.warnings, *advice_without_running(checked.program, {module.source for module in modules})])
    except DplError as failure:
        report(failure.diagnostics)
        return 1
    if types:
        print("".join(f"{line}\n" for line in signatures(checked.exports["main"])), end="")
    if size_checks:
        print("".join(f"{line}\n" for line in remaining_checks(checked.program)), end="")
    return 0


def remaining_checks(program: Program) -> list[str]:
    """The checks that remain for run time: `file:line:col: what`, in order."""
    found: dict[tuple, str] = {}
    stack: list = [item.body for item in program.items]
    while stack:
        t = stack.pop()
        stack += subterms(t)
        if isinstance(t, Check):
            for _, _, message in t.pairs:
                text = message.replace(" is not ", " is ", 1)
                found[t.span.source.name, t.span.start, text] = f"{t.span}: checks that {text}"
    return [found[key] for key in sorted(found)]


def signatures(exports: Exports) -> list[str]:
    """`name : type` for every public value of a module."""
    shown = []
    for name, value in exports.public().values.items():
        if isinstance(value, Value):
            is_name = name[0].isalpha()
            shown.append(f"{name if is_name else f'( {name} )'} : {show_scheme(value.scheme)}")
    return shown
