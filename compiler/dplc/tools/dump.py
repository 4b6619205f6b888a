"""`dpl dump`: the program after a stage of the compiler, from its source or from the dump of an earlier stage."""

from __future__ import annotations

import re
from typing import Any

import click
from dpl.diagnostics import Bug, DplError
from dpl.source import Source, Span

from dplc.pipeline import NAMES, READABLE, SIDE_NAMES, Context, compile_from, compile_to, listing, named, stage_of
from dplc.stack import on_large_stack
from dplc.tools.run import text_of


def list_stages() -> int:
    """Prints the stages, in order."""
    print(listing(), end="")
    return 0


def dump_stage(name: str, file: str, only: str | None, start: str | None, check: bool) -> int:
    """Prints a program after the stage `name`, from its source or from the dump of the stage `start`."""
    for known in (name, start):
        if known not in (*NAMES, *SIDE_NAMES, None):
            all_ = f"{', '.join(NAMES)}, and beside them {', '.join(SIDE_NAMES)}"
            raise click.UsageError(f"there is no stage `{known}`; in order, they are {all_}")
    if start and start not in READABLE:
        raise click.UsageError(f"a dump of `{start}` cannot be read back, only those of {', '.join(READABLE)}")
    if start and NAMES.index(stage_of(name).after or name) < NAMES.index(start):
        raise click.UsageError(f"the stage `{name}` comes before `{start}`")

    def work() -> str:
        source, context = text_of(file, None), Context(verify=check, device=name in ("sweeps", "place", "ptx"))
        if start is None:
            stage, value = compile_to(name, source, context)
        else:
            stage, value = compile_from(start, read_back(start, source), name, context)
        return stage.show(value)

    text = on_large_stack(work)
    chosen = text if only is None else paragraphs(text, only)
    if only and not chosen:
        why = "it may be a part of another by now"
        raise click.UsageError(f"the dump of `{name}` has no definition whose name contains `{only}` ({why})")
    print(chosen)
    return 0


def read_back(name: str, source: Source) -> Any:
    """The program whose dump after a stage is `source`.  Raises DplError if it is not well formed."""
    stage = stage_of(name)
    program = named(stage.gives.parse)(source)
    if program.main not in program.fns:
        raise DplError.at("E0101", f"there is no function {program.main}", Span(source, 0, 0))
    try:
        stage.verify(program)
    except Bug as wrong:
        title, _, line = str(wrong).partition("\n")
        raise DplError.at("E0101", title, place(source, title, line.strip())) from None
    return program


def place(source: Source, title: str, line: str) -> Span:
    """The span of the line reported by a verifier, in the function that its message names."""
    fn = re.search(r"in (.*?): ", title)
    start = max(source.text.find(f"fn {fn[1]}("), 0) if fn else 0
    start = max(source.text.find(line, start), start)
    return Span(source, start, start + len(line))


# A definition begins after a blank line in flat, at a keyword or sign in core and LLVM text.
DEFINITION = re.compile(r"\n\n|\n(?=(?:def|type|fun|fn|do|define|declare)\b|[@!]|\.visible)")


def paragraphs(text: str, word: str) -> str:
    """The definitions of a dump whose first line contains a word."""
    return "\n\n".join(p.rstrip("\n") for p in DEFINITION.split(text) if word in p.split("\n")[0])
