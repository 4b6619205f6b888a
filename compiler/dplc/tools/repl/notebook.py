"""Cells of notebooks, and `dpl run notebook.ipynb`.

let f x = x * x        a cell of two inputs: declarations, and an expression
grad f 3.0
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from dpl.diagnostics import DplError
from dpl.eval.machine.outside import ProgramExit
from dpl.syntax.load import read

from dplc.tools.repl.inputs import ready
from dplc.tools.repl.session import Session
from dplc.tools.repl.verbs import Leave, answer

SUFFIX = ".ipynb"
GOES_ON = re.compile(r"\s|[|)\]};+*/<>=&@^]|(?:and|with|when|then|else|in|end)\b|$")  # no line that begins an input


def inputs(cell: str) -> list[str]:
    """The inputs of a cell.  A line that is not indented begins one, unless the input before it is incomplete.  Blank
    lines stand for the inputs before, so that messages name the lines of the cell."""
    found: list[str] = []
    gathered = ""
    for number, line in enumerate(cell.split("\n")):
        if gathered.strip() and (line.startswith(":") or (not GOES_ON.match(line) and ready(gathered))):
            found.append(gathered)
            gathered = "\n" * number
        gathered += line + "\n"
    return [*found, gathered]


class Strict(Session):
    """A session that ends with its first failure."""

    def tell(self, failure: Exception | KeyboardInterrupt) -> NoReturn:
        raise failure


def run(file: Path, engine: str) -> int:
    """Run the cells of code of a notebook in order, and print what they print.  Returns the exit code.  Raises
    DplError."""
    session = Strict(engine)
    try:
        for number, cell in enumerate(cells(file), 1):
            for text in inputs(cell):
                if not answer(session, text, f"{file}, cell {number}"):
                    return 1
    except Leave:
        pass
    except ProgramExit as stop:
        return stop.code & 0xFF
    return 0


def cells(file: Path) -> Iterator[str]:
    """The texts of the cells of code.  Raises DplError."""
    try:
        notebook = json.loads(read(file).text)
        about = notebook.get("metadata", {})
        language = (about.get("language_info") or about.get("kernelspec") or {}).get("name", "dpl")
        made = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DplError.at("E0513", f"{file} cannot be read: it is not a notebook of Jupyter", None) from None
    if language != "dpl":
        raise DplError.at("E0513", f"{file} cannot be read: its language is {language}", None)
    return (text for kind, text in made if kind == "code")
