"""What `dpl check` and the editor say beyond errors: the wrong mode of a derivative, a kink at its starting point, an
index out of bounds.  Other commands do not look for it, as it takes time."""

from __future__ import annotations

from dpl.core.term import Program
from dpl.diagnostics import Diagnostic
from dpl.source import Source
from dpl.types import certain_bounds, kinks, modes


def advice(program: Program, own: set[Source]) -> list[Diagnostic]:
    """Warnings about a program without errors, for the sources `own`."""
    return [*modes.warnings(program, own), *kinks.warnings(program, own), *certain_bounds.warnings(program, own)]
