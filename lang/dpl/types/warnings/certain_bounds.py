"""Warns of indices and slices that are certainly out of bounds: numbers in the text, of arrays whose size is one.

    let xs = [1.0, 2.0, 3.0] in xs[3]        index 3 is out of bounds for length 3

It is a warning, as the line may never run.
"""

from __future__ import annotations

from collections.abc import Iterator

from dpl.core import term, ty
from dpl.core.term import Program, Term
from dpl.core.walk import within
from dpl.diagnostics import Diagnostic, Label
from dpl.source import Source, Span


def warnings(program: Program, own: set[Source]) -> Iterator[Diagnostic]:
    """Walks over the terms of the user's modules (`own`)."""
    for item in program.items:
        for t in within(item.body):
            match t:
                case term.Prim(op="index", args=(array, *places)) if t.span.source in own:
                    yield from outside(array, places)
                case term.Prim(op="update", args=(array, _, *places)) if t.span.source in own:
                    yield from outside(array, places)
                case term.Prim(op="slice", args=(array, low, high)) if t.span.source in own:
                    yield from cut(array, low, high)
                case _:
                    pass


def outside(array: Term, places: list[Term]) -> Iterator[Diagnostic]:
    """The warnings of an element or a row, with one place for each dimension."""
    t = array.ty
    for number, place in enumerate(places):
        length, at = length_of(t), literal(place)
        if length is not None and at is not None and not 0 <= at < length:
            dimension = f" in dimension {number + 1}" if number else ""
            yield warning(f"index {at}", place.span, array, length, dimension, at < 0)
        t = t.elem if isinstance(t, ty.Arr) else t


def cut(array: Term, low: Term, high: Term) -> Iterator[Diagnostic]:
    length, start, end = length_of(array.ty), literal(low), literal(high)
    if length is None or start is None or end is None or 0 <= start <= end <= length:
        return
    span = low.span if low.span.end > high.span.start else low.span.to(high.span)
    yield warning(f"the slice {start}:{end}", span, array, length, "", min(start, end) < 0)


def warning(what: str, place: Span, array: Term, length: int, dimension: str, backwards: bool) -> Diagnostic:
    text = array.span.text if len(array.span.text) < 30 else "xs"
    helps = (f"from the end:  {text}[length {text} - 1]",) if backwards else ()
    labels = (Label(array.span, f"this has length {length}{dimension}"),) if not array.span.contains(place) else ()
    title = f"{what} is out of bounds for length {length}{dimension}"
    return Diagnostic("W0701", title, place, labels=labels, helps=helps)


def length_of(t: ty.Ty) -> int | None:
    return t.size.const if isinstance(t, ty.Arr) and not t.size.terms else None


def literal(t: Term) -> int | None:
    return t.value if isinstance(t, term.Lit) and type(t.value) is int else None
