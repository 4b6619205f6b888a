"""The position of an inlined operation: its own span, and the calls through which it was inlined.

let half x = 1 / (2 * x)      inlined twice: the division stands in `half`, called in `quarter`, called in `main`
let quarter x = half (half x)
"""

from __future__ import annotations

from operator import attrgetter

from dpl.source import NOWHERE, Source, Span


class Inlined(Span):
    """A span in the body of the function `label`, called at `caller` (which may be inlined itself).  Its hash is kept,
    as paths of calls are long and share their outer calls."""

    __slots__ = ("caller", "hashed", "label")
    __match_args__ = (*Span.__match_args__, "label", "caller")  # pyright: ignore[reportAssignmentType]  (of a node)
    _key = attrgetter(*__match_args__)

    def __init__(self, source: Source, start: int, end: int, label: str, caller: Span) -> None:
        super().__init__(source, start, end)
        self.label = label
        self.caller = caller
        self.hashed = hash((start, end, label, caller))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Inlined) and self.hashed == other.hashed and self._key(self) == self._key(other)
        )

    def __hash__(self) -> int:
        return self.hashed


class Inlining:
    """The spans of a body that replaces a call of the function `label` at `caller`.  Equal span objects stay one
    object, so operations share the path of calls, however long it is."""

    def __init__(self, label: str, caller: Span) -> None:
        self.label = label
        self.caller = caller
        self.known: dict[int, tuple[Span, Span]] = {}  # by identity; the key is kept alive

    def span(self, span: Span) -> Span:
        found = self.known.get(id(span))
        if found is None:
            found = self.known[id(span)] = span, self.moved(span)
        return found[1]

    def moved(self, span: Span) -> Span:
        if isinstance(span, Inlined):
            return Inlined(span.source, span.start, span.end, span.label, self.span(span.caller))
        if span == NOWHERE or self.caller == NOWHERE or not self.label:
            return span if self.caller == NOWHERE or span != NOWHERE else self.caller
        return Inlined(span.source, span.start, span.end, self.label, self.caller)


def path(span: Span) -> list[tuple[str, Span]]:
    """The calls that an inlined span went through, outermost first: (called function, span of the call)."""
    calls: list[tuple[str, Span]] = []
    while isinstance(span, Inlined):
        calls.append((span.label, span.caller))
        span = span.caller
    return calls[::-1]


def without(span: Span, outer: int) -> Span:
    """The span without its `outer` outermost calls."""
    return _inner(span, len(path(span)) - outer) if outer and isinstance(span, Inlined) else span


def _inner(span: Span, calls: int) -> Span:
    if calls == 0 or not isinstance(span, Inlined):
        return Span(span.source, span.start, span.end)
    return Inlined(span.source, span.start, span.end, span.label, _inner(span.caller, calls - 1))
