"""Errors for an index or slice out of bounds: they mark the index and the array in the text `array[i, j][k]` or
`{ array with [i, j] = e }`."""

from __future__ import annotations

import re
from itertools import pairwise

from dpl.diagnostics import Diagnostic, DplError, Label
from dpl.node import node, replace
from dpl.regex import regex
from dpl.source import Span

_PIECE = regex(r'"(?:\\.|[^"\\])*"|--[^\n]*|\bwith\b|[][(){},;]', re.DOTALL)
_WRITTEN = regex(r"[-\d:\s]+")  # a literal index or slice: its text shows its value
_BACKWARDS = regex(r"(?:^|:)\s*-\s*\d")
_NUMBER = regex(r"-?\d+")
BACKWARDS = "a slice begins at or before its end"  # a help


class OutOfBounds(DplError):
    """An index or slice (`value`) is out of bounds for an array of this length.  `back` more indices follow it in the
    text."""

    def __init__(self, title: str, value: str, length: str | int, back: int = 0) -> None:
        super().__init__(Diagnostic("R0705", title))
        self.value, self.length, self.back = value, length, back

    def placed(self, span: Span) -> DplError:
        """The error in the indexing expression at `span`, marking the index and the array."""
        (bare,) = self.diagnostics
        span = without_parentheses(span)
        parts = [(group, number) for group in index_groups(span) for number in range(len(group.parts))]
        if self.back >= len(parts):
            return DplError(replace(bare, span=span))
        group, number = parts[-1 - self.back]
        at, array = group.parts[number], Span(span.source, group.array, group.ends)
        note = "" if _WRITTEN.fullmatch(at.text) else f"this is {self.value}"
        name = f"`{array.text}`" if re.fullmatch(r"[\w.']+", array.text) else "this"
        has = f"{name} has length {self.length}" + (f" in dimension {number + 1}" if number else "")
        return DplError(replace(bare, span=at, note=note, labels=(Label(array, has),), helps=self.ways(at, array)))

    def ways(self, at: Span, array: Span) -> tuple[str, ...]:
        """What was meant, if the index counts from the end, or the slice ends before it begins.  Where it is not known
        yet whether it does, in an executable's table of messages, the help is for that case."""
        if _BACKWARDS.search(at.text):
            return (f"from the end:  {array.text}[length {array.text} - 1]",)
        numbers = [int(part) for part in self.value.split(":") if _NUMBER.fullmatch(part)]
        is_backwards = numbers[0] > numbers[1] if len(numbers) == 2 else ":" in self.value
        return (BACKWARDS,) if is_backwards else ()


def index_error(index: int, length: int, back: int) -> OutOfBounds:
    """An index out of bounds, which `back` more indices follow in the text."""
    return OutOfBounds(f"index {index} is out of bounds for length {length}", str(index), length, back)


def slice_error(low: int, high: int, length: int) -> OutOfBounds:
    """A slice out of bounds."""
    return OutOfBounds(f"the slice {low}:{high} is out of bounds for length {length}", f"{low}:{high}", length)


def without_parentheses(span: Span) -> Span:
    """The indexing expression in `(a[i])`: by itself it ends with its bracket."""
    while span.text[:1] == "(" and span.text[-1:] == ")":
        inner = span.text[1:-1]
        start = span.start + 1 + len(inner) - len(inner.lstrip())
        span = Span(span.source, start, start + len(inner.strip()))
    return span


@node
class Group:
    """`[i, j]` after an array: where the array begins and ends, and the spans of its indices."""

    array: int
    ends: int
    parts: tuple[Span, ...]


def index_groups(span: Span) -> list[Group]:
    """The index brackets at the end of an expression, or of an update; none if it is neither."""
    if span.text[:1] == "{":
        return _updated(span)
    groups: list[Group] = []
    opened: list[int] = []
    commas: list[int] = []
    end = 0
    for found in _PIECE.finditer(span.text):
        piece, at = found.group(), found.start()
        if piece in "([{":
            opened.append(at)
        elif piece in ")]}" and opened:
            start = opened.pop()
            if not opened:
                if piece == "]" and start > 0:
                    group = _group(span, [start, *commas, at], (0, start))
                    groups = [*(groups if start == end else []), group]
                commas, end = [], at + 1
        elif piece == "," and len(opened) == 1:
            commas.append(at)
    return groups if end == len(span.text) else []


def _updated(span: Span) -> list[Group]:
    """The index brackets of `{ array with [i, j] = e }`; none of several updates, whose operations share a span."""
    depth, array, marks, closed = 0, (1, 1), list[int](), False
    for found in _PIECE.finditer(span.text):
        piece, at = found.group(), found.start()
        depth += (piece in "([{") - (piece in ")]}")
        if piece == "with" and depth == 1:
            before = span.text[1:at]
            array = (1 + len(before) - len(before.lstrip()), 1 + len(before.rstrip()))
        elif depth == 1 and piece == ";":
            return []
        elif array[1] > 1 and not closed and (depth, piece) in ((2, "["), (2, ","), (1, "]")):
            marks.append(at)
            closed = piece == "]"
    return [_group(span, marks, array)] if closed else []


def _group(span: Span, marks: list[int], array: tuple[int, int]) -> Group:
    """`marks` are the positions of the opening bracket, the commas and the closing bracket."""
    parts = []
    for before, after in pairwise(marks):
        text = span.text[before + 1 : after]
        start = span.start + before + 1 + len(text) - len(text.lstrip())
        parts.append(Span(span.source, start, start + len(text.strip())))
    return Group(span.start + array[0], span.start + array[1], tuple(parts))
