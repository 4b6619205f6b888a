"""Where an operation stands that was inlined: its own place, and the calls that led there.

let half x = 1 / (2 * x)      inlined twice: the division stands in `half`, called in `quarter`, called in `main`
let quarter x = half (half x)
"""

from __future__ import annotations

from dpl.node import node
from dpl.source import NOWHERE, Span


@node
class Inlined(Span):
    """A span in the body of the function `label`, called at `caller` (which may be inlined itself)."""

    label: str
    caller: Span


def inlined(span: Span, label: str, caller: Span) -> Span:
    """The span of what stood in function `label`, when its body takes the place of a call."""
    if isinstance(span, Inlined):
        return Inlined(span.source, span.start, span.end, span.label, inlined(span.caller, label, caller))
    if span == NOWHERE or caller == NOWHERE or not label:
        return span if caller == NOWHERE or span != NOWHERE else caller
    return Inlined(span.source, span.start, span.end, label, caller)


def path(span: Span) -> list[tuple[str, Span]]:
    """The calls that an inlined span went through, outermost first: which function, called where."""
    calls: list[tuple[str, Span]] = []
    while isinstance(span, Inlined):
        calls.append((span.label, span.caller))
        span = span.caller
    return calls[::-1]
