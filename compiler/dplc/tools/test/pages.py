"""`dpl test page.md`: runs the blocks of a literate page in one session and compares what each prints with the block of
output after it.  With `--update`, the page gets what they print now.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dpl.diagnostics import DplError
from dpl.eval.machine.outside import ProgramExit
from dpl.node import node
from dpl.source import Source
from dpl.syntax import tree
from dpl.syntax.load import MAIN, Module, read
from dpl.syntax.pages import Block, blocks, misspelt
from dpl.syntax.parse import parse_block, printed
from dpl.types.declarations import Item

from dplc.tools.files import put
from dplc.tools.repl.inputs import as_it, declared
from dplc.tools.repl.session import Session


@node
class Shown:
    """A block that ran: its line and the first line of its text, what it printed, what the page says, the seconds, and
    what is wrong.  It is `right` if it failed or not as it should, whatever it printed."""

    block: Block
    line: int
    title: str
    printed: str
    expected: str
    seconds: float
    right: bool
    why: str


FLOAT = re.compile(r"(?<![\w.])-?\d+(?:\.\d*(?:e[+-]?\d+)?|e[+-]?\d+)")
TOLERANCE = 1e-9  # relative, and of numbers below LEAST relative to that
LEAST = 1e-3
ROUNDS = 4
MESSAGES = frozenset({"error", "warning"})  # blocks that show one


def shown(file: Path, engine: str) -> tuple[Source, list[Shown]]:
    """The page, and its blocks as they ran.  Raises DplError if it cannot be read."""
    source = read(file, file.name)  # messages in the page are the same wherever it is
    if problems := list(misspelt(source)):
        raise DplError(*problems)
    with captured() as taken:
        session = Session(engine)
        return source, [run(source, block, session, taken) for block in blocks(source.text) if is_run(block)]


def is_run(block: Block) -> bool:
    return block.runs or block.words == {"error"}


def run(source: Source, block: Block, session: Session, taken: Callable[[int], str]) -> Shown:
    """Run a block in the session."""
    begin = time.perf_counter()
    try:
        done = session.attempt(lambda: session.perform(lambda: checked(source, block, session)))
    except ProgramExit as stop:
        done = stop.code == 0
    written, told = taken(0), taken(1)
    text, expected = source.text[block.start : block.end], source.text[slice(*block.output or (0, 0))]
    right = done and not told if not block.words & MESSAGES else done == ("error" not in block.words) and bool(told)
    why = "" if right else told or f"{', '.join(block.words)} is expected, and there is none"
    if right and not same(written + told, expected):
        why = "\n".join(difflib.ndiff(expected.splitlines(), (written + told).splitlines()))
    title = text.lstrip().split("\n")[0]
    seconds = time.perf_counter() - begin
    return Shown(block, source.position(block.start)[0], title, written + told, expected, seconds, right, why.rstrip())


def same(printed: str, expected: str) -> bool:
    """Whether two texts are equal, except for the last digits of floats, which depend on the engine."""
    if printed == expected:
        return True
    numbers = zip(FLOAT.findall(printed), FLOAT.findall(expected), strict=False)
    return FLOAT.sub("#", printed) == FLOAT.sub("#", expected) and all(
        abs(float(a) - float(b)) <= TOLERANCE * max(abs(float(b)), LEAST) for a, b in numbers
    )


def checked(source: Source, block: Block, session: Session) -> tuple[list[str], list[Item]]:
    """The names to tell of, and the core of the block's declarations."""
    part, types = parse_block(source, block), "types" in block.words
    file = part if isinstance(part, tree.File) else as_it(part) if types else printed(part)
    items = session.types.add(session.loader.add(Module(MAIN, source, file)))
    return declared(file) if types else [], items


def update(file: Path, engine: str) -> list[Shown]:
    """Run a page, and write what its blocks print into it, again if that moves the lines of which messages tell.  What
    a page prints may change with every run, so there is an end to it."""
    source, found = shown(file, engine)
    for _ in range(ROUNDS):
        if (text := updated(source, found)) == source.text:
            break
        put(file, text.encode())
        source, found = shown(file, engine)
    else:
        print(f"{file} prints something else in each run", file=sys.stderr)
    return found


def updated(source: Source, found: list[Shown]) -> str:
    """The text of the page with what the blocks print now; blocks that failed stay as they are."""
    text = source.text
    for one in reversed(found):
        if one.right and not same(one.printed, one.expected):
            start, end = one.block.output or (one.block.over, one.block.over)
            written = one.printed if one.block.output else f"```text\n{one.printed}```\n"
            text = text[:start] + written + text[end:]
    return text


@contextmanager
def captured() -> Generator[Callable[[int], str]]:
    """Inside a `with`, standard output (0) and error (1) go to files, also from native code.  The function that is
    handed out returns what has come to one of them since its last call."""
    kept = sys.stdout, sys.stderr
    for stream in kept:
        stream.flush()
    numbers = (1, 2)
    duplicates = [os.dup(number) for number in numbers]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:

        def taken(which: int) -> str:
            file = (out, err)[which]
            file.flush()
            file.seek(0)
            text = file.read()
            file.seek(0)
            file.truncate()
            return text

        try:
            for file, number in zip((out, err), numbers, strict=True):
                os.dup2(file.fileno(), number)
            sys.stdout, sys.stderr = out, err
            yield taken
        finally:
            sys.stdout, sys.stderr = kept
            for duplicate, number in zip(duplicates, numbers, strict=True):
                os.dup2(duplicate, number)
                os.close(duplicate)
