"""A client's two streams.  A message that is too long or too deep ends the connection."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, BinaryIO

from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol

from dplc.tools.messages import LONGEST, is_deep

log = logging.getLogger("dpl")


class Input:
    """Standard input as the server's library reads it: lines of a header, then a body."""

    def __init__(self, incoming: BinaryIO) -> None:
        self.incoming = incoming
        self.closed = False

    def readline(self) -> bytes:
        return b"" if self.closed else self.incoming.readline(LONGEST)

    def read(self, length: int) -> bytes:
        if length > LONGEST:
            return self.refused(f"a message is longer than {LONGEST >> 20} MiB")
        body = self.incoming.read(length)
        if is_deep(body):
            return self.refused("a message is nested too deeply")
        return body

    def refused(self, why: str) -> bytes:
        log.error(why)
        self.closed = True
        return b""


class Output:
    """Where the server's library writes its answers.  A client that has gone is no error: the next read finds out."""

    def __init__(self, outgoing: BinaryIO) -> None:
        self.outgoing = outgoing

    def write(self, answer: bytes) -> None:
        with suppress(OSError):
            self.outgoing.write(answer)

    def flush(self) -> None:
        with suppress(OSError):
            self.outgoing.flush()

    def close(self) -> None:
        with suppress(OSError):
            self.outgoing.close()


class Protocol(LanguageServerProtocol):
    """The library's, but a request with malformed parameters is answered."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException:
            number = data.get("id")
            if isinstance(number, int | str) and "method" in data:
                refusal = JsonRpcInvalidParams(f"the parameters of {data['method']} lack a part, or have a wrong one")
                self._send_response(number, None, refusal.to_response_error())
            raise


class Lines(logging.Formatter):
    """The log.  A malformed message takes a line of it; the library would show where in itself it has noticed."""

    def format(self, record: logging.LogRecord) -> str:
        if record.msg == "Unable to handle message" and record.exc_info:
            kind, failure, _ = record.exc_info
            return f"a message is malformed: {kind.__name__ if kind else ''}: {failure}"
        if record.msg.startswith("Unable to deserialize message"):
            return "a message lacks a part, or has one of the wrong type"
        return super().format(record)
