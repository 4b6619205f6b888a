"""The middle of the compiler: one pass, one file."""

from __future__ import annotations

from dpl.source import Span


class NeedsInterpreter(Exception):
    """The program uses something that native code does not support yet.  The driver runs the interpreter instead."""

    def __init__(self, reason: str, span: Span | None = None, helps: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span
        self.helps = helps
