"""What is said of a program without errors: derivatives that are zero everywhere, or in the wrong mode, and indices out
of bounds.  This takes a millisecond or two, so each command says it.  Kinks (`kinks.py`) take as long as checking the
program: only `dpl check` and editors look for them."""

from __future__ import annotations

from dpl.core.term import Program
from dpl.diagnostics import Diagnostic
from dpl.source import Source
from dpl.types import activity, certain_bounds, modes


def advice(program: Program, own: set[Source]) -> list[Diagnostic]:
    """Warnings about a whole program, for the sources `own`."""
    return [*activity.warnings(program, own), *modes.warnings(program, own), *certain_bounds.warnings(program, own)]
