"""`dpl check`: is it a program, and which types does it have?"""

from __future__ import annotations

from pathlib import Path

from dpl.diagnostics import DplError
from dpl.syntax.load import load, read
from dpl.types.check import check_all
from dpl.types.env import Exports, Value
from dpl.types.pretty import show_scheme

from dplc.tools.process import on_large_stack
from dplc.tools.report import report, warn


def check_files(files: list[str], types: bool) -> int:
    """Exit code 1 if one of them is not a program."""
    return max(on_large_stack(lambda f=f: check_file(Path(f), types)) for f in files)


def check_file(file: Path, types: bool) -> int:
    try:
        checked = check_all(load(read(file)))
        warn(checked.warnings)
    except DplError as failure:
        report(failure.diagnostics)
        return 1
    if types:
        print("".join(f"{line}\n" for line in signatures(checked.exports["main"])), end="")
    return 0


def signatures(exports: Exports) -> list[str]:
    """`name : type` of everything that a module offers."""
    shown = []
    for name, value in exports.public().values.items():
        if isinstance(value, Value):
            is_name = name[0].isalpha()
            shown.append(f"{name if is_name else f'( {name} )'} : {show_scheme(value.scheme)}")
    return shown
