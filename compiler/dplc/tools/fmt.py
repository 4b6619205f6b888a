"""`dpl fmt`: formats programs, and the blocks of programs in pages, in the standard style."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

from dpl.diagnostics import DplError
from dpl.syntax.formatter.format import format_source
from dpl.syntax.load import read

from dplc.stack import on_large_stack
from dplc.tools.files import put
from dplc.tools.report import report
from dplc.tools.streams import standard_input


def format_paths(paths: list[str], only_check: bool, diff: bool) -> int:
    """Format files and folders.  Returns exit code 1 if a file cannot be parsed, or, with `only_check` or `diff`, if a
    file would change."""
    code = 0
    for path in paths:
        if path == "-":
            print(on_large_stack(lambda: format_source(standard_input())), end="")
            continue
        folder = Path(path)
        for file in sorted(folder.rglob("*.dp")) if folder.is_dir() else [folder]:
            try:
                code |= format_file(file, only_check, diff)
            except DplError as failure:
                report(failure.diagnostics)
                code = 1
    return code


def format_file(file: Path, only_check: bool, diff: bool) -> int:
    source = read(file)
    before, after = source.text, on_large_stack(lambda: format_source(source))
    if before == after:
        return 0
    if diff:
        lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"{file}", f"{file} (formatted)")
        print("".join(lines), end="")
    elif only_check:
        print(f"would change {file}")
    else:
        put(file, after.encode())
        print(f"formatted {file}", file=sys.stderr)
    return 1 if only_check or diff else 0
