"""Spans of inlined operations: paths of calls, and what is cut off them."""

from dpl.source import Source, Span
from dplc.flat.places import Cutting, Inlined, path

SOURCE = Source("<here>", "x" * 100)


def nested(*calls: int) -> Span:
    """A span at 0 that was inlined through calls at these places, innermost first."""
    if not calls:
        return Span(SOURCE, 50, 51)
    caller = nested(*calls[1:])
    return Inlined(SOURCE, calls[0] - 1, calls[0], f"f{calls[0]}", caller)


def test_outer_calls_are_cut() -> None:
    span = nested(1, 2, 3)
    assert [label for label, _ in path(span)] == ["f3", "f2", "f1"]
    assert [label for label, _ in path(Cutting(1).span(span))] == ["f2", "f1"]
    assert Cutting(3).span(span) == Span(SOURCE, 0, 1)
    assert Cutting(0).span(span) == span


def test_shared_calls_stay_shared() -> None:
    outer = nested(2, 3)
    one, two = (Inlined(SOURCE, i, i + 1, "g", outer) for i in (10, 20))
    cutting = Cutting(1)
    first, second = cutting.span(one), cutting.span(two)
    assert isinstance(first, Inlined) and isinstance(second, Inlined) and first.caller is second.caller


def test_long_paths() -> None:
    span: Span = Span(SOURCE, 0, 1)
    for _ in range(5000):
        span = Inlined(SOURCE, 1, 2, "f", span)
    assert len(path(Cutting(4000).span(span))) == 1000
