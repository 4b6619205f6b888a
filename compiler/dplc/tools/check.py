"""`dpl check`: is it a program, and which types does it have?"""

from __future__ import annotations

from pathlib import Path

from dpl.core import term
from dpl.diagnostics import DplError
from dpl.syntax.load import load, read
from dpl.types.check import check_program
from dpl.types.pretty import show_scheme

from dplc.tools.process import on_large_stack, report


def check_files(files: list[str], types: bool) -> int:
    """Exit code 1 if one of them is not a program."""
    return max(on_large_stack(lambda f=f: check_file(Path(f), types)) for f in files)


def check_file(file: Path, types: bool) -> int:
    try:
        program, warnings = check_program(load(read(file)))
    except DplError as failure:
        report(failure.diagnostics)
        return 1
    report(warnings)
    if types:
        for item in program.items:
            if isinstance(item, term.Def):
                print(f"{item.name.removeprefix('main.')} : {show_scheme(item)}")
    return 0
