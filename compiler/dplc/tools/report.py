"""Prints diagnostics as the options say: with excerpts, as single lines, or as JSON; some warnings become errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from dpl.diagnostics import Diagnostic, DplError
from dpl.node import record, replace


@record
class Wishes:
    """The options: `color` is auto, always or never; `format` is human, short or json; `denied` has codes of warnings
    that are errors, or `warnings` for all."""

    color: str = "auto"
    format: str = "human"
    denied: tuple[str, ...] = ()
    quiet: bool = False
    where: TextIO | None = None  # None: standard error


wishes = Wishes()


def warn(warnings: Sequence[Diagnostic]) -> None:
    """Report warnings.  Denied ones are errors: raises DplError with them."""
    denied = [d for d in warnings if "warnings" in wishes.denied or d.code in wishes.denied]
    if not wishes.quiet:
        report([d for d in warnings if d not in denied])
    if denied:
        raise DplError(*(replace(d, denied=True) for d in denied))


def report(diagnostics: Sequence[Diagnostic]) -> None:
    """Prints to the standard error, or where the options say."""
    if not diagnostics:
        return
    where = wishes.where or sys.stderr
    match wishes.format:
        case "json":
            import json

            from dpl.messages import as_json

            text = "\n".join(json.dumps(as_json(d), ensure_ascii=False) for d in diagnostics)
        case "short":
            from dpl.render import short

            text = "\n".join(short(d) for d in diagnostics)
        case _:
            from dpl.render import render

            width = os.get_terminal_size(where.fileno()).columns if where.isatty() else 100
            text = "\n\n".join(render(d, width=width, color=colored(where)) for d in diagnostics)
    print(text, file=where)


def colored(where: TextIO) -> bool:
    """True for coloured output: the option decides, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if wishes.color != "auto":
        return wishes.color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or where.isatty()
