"""What `dpl check` and the editor say about derivatives beyond errors: the wrong mode, a kink at the starting point.
Other commands do not look for it, as it takes time."""

from __future__ import annotations

from dpl.core.term import Program
from dpl.diagnostics import Diagnostic
from dpl.source import Source
from dpl.types import kinks, modes


def advice(program: Program, own: set[Source]) -> list[Diagnostic]:
    """Warnings about a program without errors, for the sources `own`."""
    return [*modes.warnings(program, own), *kinks.warnings(program, own)]
