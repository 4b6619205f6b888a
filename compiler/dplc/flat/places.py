"""The position of an inlined operation: its own span, and the calls through which it was inlined.

let half x = 1 / (2 * x)      inlined twice: the division stands in `half`, called in `quarter`, called in `main`
let quarter x = half (half x)
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from dpl.source import NOWHERE, Source, Span

PRELUDE = Source("stdlib/prelude.dp", "")


class Inlined(Span):
    """A span in the body of the function `label`, called at `caller` (which may be inlined itself).  A function that
    the compiler made has no label.  The hash is kept, as paths of calls are long and share their outer calls."""

    __slots__ = ("caller", "hashed", "label")
    # pyrefly: ignore[bad-override, bad-override-mutable-attribute]  (of a node)
    __match_args__ = (*Span.__match_args__, "label", "caller")
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
        """The span in the caller; each span is made once."""
        found = self.known.get(id(span))
        if found is None:
            found = self.known[id(span)] = span, self.moved(span)
        return found[1]

    def moved(self, span: Span) -> Span:
        if isinstance(span, Inlined):
            return Inlined(span.source, span.start, span.end, span.label, self.span(span.caller))
        if span == NOWHERE or self.caller == NOWHERE:
            return self.caller if span == NOWHERE else span
        return Inlined(span.source, span.start, span.end, self.label, self.caller)


def inside(name: str, caller: Span) -> Span:
    """The span of what a primitive of differentiation does for its call at `caller`: messages tell that call, as they
    do for the library's `grad`, and not the call of the derivative in it."""
    plain = caller == NOWHERE or caller.source.in_library
    return caller if plain else Inlined(PRELUDE, 0, 0, f"Prelude.{name}", caller)


def path(span: Span) -> list[tuple[str, Span]]:
    """The calls that an inlined span went through, outermost first: (called function, span of the call)."""
    calls: list[tuple[str, Span]] = []
    while isinstance(span, Inlined):
        if span.label:
            calls.append((span.label, span.caller))
        span = span.caller
    return calls[::-1]


def outermost(spans: Iterable[Span]) -> Span:
    """The first span that went through the fewest calls; NOWHERE if there is none."""
    return min(spans, key=lambda span: len(path(span)), default=NOWHERE)


class Cutting:
    """The spans without their `outer` outermost calls.  Spans that share calls still share them."""

    def __init__(self, outer: int) -> None:
        self.outer = outer
        self.known: dict[int, tuple[Span, int, Span]] = {}  # by identity: the span, its number of calls, the result

    def span(self, span: Span) -> Span:
        """The span with at most `outer` of its outermost calls."""
        chain: list[Inlined] = []
        at = span
        while isinstance(at, Inlined) and id(at) not in self.known:
            chain.append(at)
            at = at.caller
        _, calls, short = self.known.get(id(at), (at, 0, at))
        for one in reversed(chain):
            calls += 1
            if calls > self.outer:
                short = Inlined(one.source, one.start, one.end, one.label, short)
            else:
                short = Span(one.source, one.start, one.end)
            self.known[id(one)] = one, calls, short
        return short
