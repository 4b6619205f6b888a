"""Lines of a file, a pipe or a socket, as they come."""

from __future__ import annotations

import os
import select

from dpl.syntax.load import unreadable

SOON = 0.02  # seconds in which more comes from who writes a text in pieces


class Lines:
    def __init__(self, file: int) -> None:
        self.file = file
        self.rest = b""  # what was read, and not given yet
        self.ended = False

    def next(self) -> str:
        """With its end; empty if there are no more."""
        while b"\n" not in self.rest and not self.ended:
            self.read()
        line, end, self.rest = self.rest.partition(b"\n")
        return (line.removesuffix(b"\r") + end).decode("utf-8", "replace")

    def goes_on(self) -> bool:
        """Whether the next line, if there is one already, is empty or begins with a blank."""
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
