"""What is said of a program without errors."""

from __future__ import annotations

from dpl.core.term import Program
from dpl.diagnostics import Diagnostic
from dpl.source import Source
from dpl.types.warnings import activity, modes


def advice(program: Program, own: set[Source]) -> list[Diagnostic]:
    """The warnings of every command, for the sources `own`: derivatives that are zero everywhere, or in the wrong mode.
    They take a millisecond or two."""
    return [*activity.warnings(program, own), *modes.warnings(program, own)]


def advice_without_running(program: Program, own: set[Source]) -> list[Diagnostic]:
    """The warnings of `dpl check` and editors besides: kinks, which take up to five times as long as checking the
    program; and indices out of bounds: a run would say the same twice, in a warning and in its error."""
    from dpl.types.warnings import certain_bounds, kinks

    return [*kinks.warnings(program, own), *certain_bounds.warnings(program, own)]
