"""Messages of the Debug Adapter Protocol over a pair of files: a header with the length, then JSON."""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress
from typing import Any, BinaryIO

from dplc.tools.messages import LONGEST, is_deep


class Malformed(Exception):
    """The client does not speak the protocol."""


class Wire:
    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.numbers = 0
        self.lock = threading.Lock()

    def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end of the input."""
        length = 0
        while (line := self.incoming.readline(1 << 12)).strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value) if value.strip().isdigit() else -1
        if not line:
            return None
        if length > LONGEST:
            raise Malformed(f"a message is longer than {LONGEST >> 20} MiB")
        if length <= 0:
            raise Malformed("a message has no length")
        body = self.incoming.read(length)
        if len(body) < length:
            return None
        if is_deep(body):
            raise Malformed("a message is nested too deeply")
        try:
            message = json.loads(body)
        except ValueError as error:
            raise Malformed(f"a message is not JSON: {error}") from None
        if not isinstance(message, dict):
            raise Malformed("a message is not an object")
        return message

    def send(self, message: dict[str, Any]) -> None:
        """Send a message.  A client that has gone is no error: the next `receive` finds out."""
        with self.lock:
            self.numbers += 1
            body = json.dumps({"seq": self.numbers, **message}, ensure_ascii=False).encode("utf-8", "replace")
            with suppress(OSError, ValueError):
                self.outgoing.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self.outgoing.flush()


def of_process() -> Wire:
    """The wire over standard input and output.  The program that is debugged gets neither: its input is empty, and
    what it prints is sent in messages."""
    sys.stdout.flush()
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return Wire(incoming, outgoing)
