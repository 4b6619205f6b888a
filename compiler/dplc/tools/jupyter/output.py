"""What a cell prints, sent to the page while the cell runs.

Native code writes to the files 1 and 2 of the process, so these become pipes; a thread reads each until its end.
"""

from __future__ import annotations

import os
import sys
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from select import select
from threading import Thread

STREAMS = ((1, "stdout"), (2, "stderr"))


class Output:
    """`send` takes the name of a stream and a text, `show` a picture as SVG."""

    def __init__(self, send: Callable[[str, str], object], show: Callable[[str], object]) -> None:
        self.send, self.show = send, show
        self.pipes = ExitStack()

    @contextmanager
    def taken(self) -> Generator[None]:
        """Inside a `with`, what is printed is sent.  All of it is sent when the `with` ends."""
        self.open()
        try:
            yield
        finally:
            self.pipes.close()

    @contextmanager
    def picture(self) -> Generator[None]:
        """Inside a `with` in `taken`, what is printed is a picture.  It is shown after what was printed before."""
        self.pipes.close()
        with tempfile.TemporaryFile() as file:
            try:
                with written_to(1, file.fileno()):
                    yield
            finally:
                self.open()
            file.seek(0)
            self.show(file.read().decode())

    def open(self) -> None:
        for number, name in STREAMS:
            self.pipes.enter_context(piped(number, lambda text, name=name: self.send(name, text)))


@contextmanager
def piped(number: int, receive: Callable[[str], object]) -> Generator[None]:
    """Inside a `with`, `receive` gets what is written to a file."""
    reading, writing = os.pipe()
    ended, end = os.pipe()  # another process may have the file, so its pipe may not end with the `with`
    thread = Thread(target=receive_all, args=(reading, ended, receive), daemon=True)
    thread.start()
    try:
        with written_to(number, writing):
            yield
    finally:
        os.close(end)
        thread.join()
        for one in (writing, reading, ended):
            os.close(one)


def receive_all(reading: int, ended: int, receive: Callable[[str], object]) -> None:
    """Read a pipe until it is empty and `ended` has ended."""
    decoder = getincrementaldecoder("utf-8")("replace")
    while reading in select([reading, ended], [], [])[0]:
        if text := decoder.decode(os.read(reading, 1 << 16)):
            receive(text)


@contextmanager
def written_to(number: int, other: int) -> Generator[None]:
    """Inside a `with`, what is written to a file goes to another one."""
    flush()
    before = os.dup(number)
    os.dup2(other, number)
    try:
        yield
    finally:
        flush()
        os.dup2(before, number)
        os.close(before)


def flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
