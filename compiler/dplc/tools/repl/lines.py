"""Reads lines of a file, a pipe or a socket as they arrive."""

from __future__ import annotations

import os
import select

from dpl.syntax.load import unreadable

SOON = 0.02  # seconds to wait for more from a writer that sends a text in pieces


class Lines:
    def __init__(self, file: int) -> None:
        self.file = file
        self.rest = b""  # read, but not returned yet
        self.ended = False

    def next(self) -> str:
        """The next line with its newline; empty at the end of the input."""
        while b"\n" not in self.rest and not self.ended:
            self.read()
        line, end, self.rest = self.rest.partition(b"\n")
        return (line.removesuffix(b"\r") + end).decode("utf-8", "replace")

    def goes_on(self) -> bool:
        """True if the next line has arrived and is empty or begins with a blank."""
        if not self.rest and not self.ended and select.select([self.file], [], [], SOON)[0]:
            self.read()
        return self.rest[:1].isspace()

    def read(self) -> None:
        try:
            more = os.read(self.file, 1 << 16)
        except OSError as failure:
            raise unreadable("<stdin>", failure) from None
        self.rest += more
        self.ended = not more
