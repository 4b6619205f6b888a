"""`dpl dump`: the program after a stage of the compiler."""

from __future__ import annotations

import re

import click

from dplc.pipeline import NAMES, Context, compile_to
from dplc.tools.process import on_large_stack
from dplc.tools.run import text_of


def dump_stage(name: str, file: str, only: str | None) -> int:
    if name not in NAMES:
        raise click.UsageError(f"there is no stage `{name}`; in order, they are {', '.join(NAMES)}")

    def work() -> str:
        stage, value = compile_to(name, text_of(file, None), Context())
        return stage.show(value)

    text = on_large_stack(work)
    print(text if only is None else paragraphs(text, only))
    return 0


# Where a definition begins: after a blank line in flat and LLVM text, at a keyword in core.
DEFINITION = re.compile(r"\n\n|\n(?=(?:def|type|fun|fn|do)\b)")


def paragraphs(text: str, word: str) -> str:
    """The definitions of a dump whose first line mentions a word."""
    return "\n\n".join(p.rstrip("\n") for p in DEFINITION.split(text) if word in p.split("\n")[0])
