"""Offsets in code points <-> lines and characters as a client counts them: in UTF-16 code units by default."""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, PositionEncodingKind, Range

_NEWLINE = re.compile(r"\r\n|\n|\r")
_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}


def readable(text: str) -> str:
    """The text with each lone surrogate, which a client may send, replaced by a replacement character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Lines:
    """The lines of one text."""

    def __init__(self, text: str, encoding: PositionEncodingKind | str | None = None) -> None:
        self.text = text
        self.starts = [0, *(m.end() for m in _NEWLINE.finditer(text))]
        self.units = _UNITS.get(str(getattr(encoding, "value", encoding) or "utf-16"))

    def offset(self, position: Position) -> int:
        """The offset of a position.  A position past the end of its line or of the text counts as that end."""
        if position.line >= len(self.starts):
            return len(self.text)
        start = self.starts[position.line]
        line = self._line(position.line)
        if self.units is None or line.isascii():
            return start + min(position.character, len(line))
        codec, size = self.units
        return start + len(line.encode(codec)[: position.character * size].decode(codec, "ignore"))

    def position(self, offset: int) -> Position:
        number = bisect_right(self.starts, offset) - 1
        return Position(number, self.length(self.text[self.starts[number] : offset]))

    def length(self, text: str) -> int:
        """The length of a text without line breaks, in the client's units."""
        if self.units is None or text.isascii():
            return len(text)
        codec, size = self.units
        return len(text.encode(codec)) // size

    def range(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    def _line(self, number: int) -> str:
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].rstrip("\r\n")
