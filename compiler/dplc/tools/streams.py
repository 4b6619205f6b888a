"""The standard streams as a command wants them: UTF-8 whatever the locale says, there even where the caller closed
them, and with failures of their own.

What cannot be written to standard output is `OutputFailed`, which no other file's failure is taken for; what cannot be
said on standard error is not said.
"""

from __future__ import annotations

import io
import os
import sys

from dpl.source import Source

STDIN = "<stdin>"


class OutputFailed(Exception):
    """Standard output takes no more; `code` is the system's."""

    def __init__(self, failure: OSError) -> None:
        super().__init__(f"cannot write standard output: {failure.strerror}")
        self.code = failure.errno


class Output(io.FileIO):
    def write(self, data, /) -> int | None:
        try:
            return super().write(data)
        except OSError as failure:
            raise OutputFailed(failure) from None


class Errors(io.FileIO):
    def write(self, data, /) -> int | None:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def behave() -> None:
    """Makes the standard streams anew."""
    for file, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            stand_in(file)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = text_to(Output(1, "w", closefd=False), "surrogateescape", os.isatty(1))
    sys.stderr = text_to(Errors(2, "w", closefd=False), "backslashreplace", True)


def text_to(file: io.FileIO, errors: str, by_lines: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(file), "utf-8", errors, line_buffering=by_lines)


def stand_in(file: int) -> None:
    """Takes the place of a closed file, before another one does.  To use it fails as before; but for messages, which
    are lost."""
    os.open(os.devnull, os.O_RDONLY if file == 1 else os.O_WRONLY)


def standard_input() -> Source:
    """All of it."""
    from dpl.syntax.load import decoded, unreadable

    try:
        return Source(STDIN, decoded(sys.stdin.buffer.read(), STDIN))
    except OSError as failure:
        raise unreadable(STDIN, failure) from None


def give_up_output() -> None:
    """Discards pending output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
