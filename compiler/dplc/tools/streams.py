"""The standard streams of the command: always UTF-8, usable even if the caller closed them, and with their own errors.

A failure to write standard output raises `OutputFailed`, which no other file raises.  Failures to write standard error
are ignored.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpl.source import Source

STDIN = "<stdin>"


class OutputFailed(Exception):
    """Standard output cannot be written; `code` is the system's error number."""

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
    """Replace the standard streams."""
    for file, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            stand_in(file)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = text_to(Output(1, "w", closefd=False), "surrogateescape", os.isatty(1))
    sys.stderr = text_to(Errors(2, "w", closefd=False), "backslashreplace", True)


def text_to(file: io.FileIO, errors: str, by_lines: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(file), "utf-8", errors, line_buffering=by_lines)


def stand_in(file: int) -> None:
    """Occupy the number of a closed standard file, so that no other file gets it.  Reading standard input and writing
    standard output fail as before; messages are lost."""
    os.open(os.devnull, os.O_RDONLY if file == 1 else os.O_WRONLY)


def standard_input() -> Source:
    """The whole standard input as a source.  Raises DplError if it cannot be read."""
    from dpl.source import Source
    from dpl.syntax.load import decoded, unreadable

    try:
        return Source(STDIN, decoded(sys.stdin.buffer.read(), STDIN))
    except OSError as failure:
        raise unreadable(STDIN, failure) from None


def give_up_output() -> None:
    """Discard pending output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
