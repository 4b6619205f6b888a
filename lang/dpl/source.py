"""Sources and spans: positions in texts.  Everything builds on this module, so it imports little."""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path

from dpl import host
from dpl.node import node


def unified(text: str) -> str:
    """The text with all line ends converted to newlines, and without the mark that some editors begin a file with."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


class Source:
    """A text: `name` as shown to the user, `text` its contents.

    A source on disk is pickled without its text, which is read again on first use.  So cached definitions stay small.
    """

    __slots__ = ("_lines", "_text", "name", "path")

    def __init__(self, name: str, text: str | None = None, path: Path | None = None) -> None:
        self.name = name
        self.path = path
        self._text = text
        self._lines: list[int] | None = None

    @property
    def in_library(self) -> bool:
        """Whether it is a module of the standard library."""
        return self.name.startswith("stdlib/")

    @property
    def text(self) -> str:
        """The text; empty if its file is gone."""
        if self._text is None:
            try:
                self._text = unified(host.current.read_bytes(self.path).decode("utf-8")) if self.path else ""
            except (OSError, UnicodeDecodeError):  # gone since it was cached: messages lack the excerpt
                self._text = ""
        return self._text

    @property
    def starts(self) -> list[int]:
        """The offsets at which lines start."""
        if self._lines is None:
            self._lines = [0, *(newline.end() for newline in re.finditer("\n", self.text))]
        return self._lines

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column (in code points) of an offset."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int, first: int = 0, last: int | None = None) -> str:
        """The text of a 1-based line, or its characters from `first` to `last`, without its newline."""
        if not 0 < number <= len(self.starts):
            return ""
        start = self.starts[number - 1]
        end = self.starts[number] - 1 if number < len(self.starts) else len(self.text)
        return self.text[start + first : end if last is None else min(start + last, end)]

    def __reduce__(self) -> tuple:
        return Source, (self.name, None if self.path else self._text, self.path)

    def __eq__(self, other: object) -> bool:
        """Sources of one file on disk are equal; other sources are equal to themselves only."""
        if self is other or not isinstance(other, Source) or self.path is None:
            return self is other
        return (self.name, self.path) == (other.name, other.path)

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    def __repr__(self) -> str:
        return f"Source({self.name!r})"


@node
class Span:
    """A range of a source: offsets in code points, the end exclusive."""

    source: Source
    start: int
    end: int

    def contains(self, other: Span) -> bool:
        """True if another span of the same source is within this one."""
        return self.source == other.source and self.start <= other.start and other.end <= self.end

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the later one."""
        return Span(self.source, self.start, max(self.end, other.end))

    @property
    def line(self) -> int:
        """The number of the line, from 1."""
        return self.source.position(self.start)[0]

    @property
    def text(self) -> str:
        """The text of the span."""
        return self.source.text[self.start : self.end]

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"


NOWHERE = Span(Source("<builtin>", ""), 0, 0)
