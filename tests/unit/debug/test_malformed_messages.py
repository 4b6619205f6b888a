"""Messages that no client should send, to the debug adapter and to the language server."""

import io
import json
import logging
import os

import pytest
from dplc.tools.debug.wire import Malformed, Wire
from dplc.tools.lsp.input import Input, Lines, Output
from dplc.tools.messages import LONGEST, is_deep


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"\r\n", "no length"),
        (b"Content-Length: x\r\n\r\n{}", "no length"),
        (b"Content-Length: 99999999999\r\n\r\n{}", "longer than 64 MiB"),
        (b"Content-Length: 2\r\n\r\n{x", "not JSON"),
        (b"Content-Length: 2\r\n\r\n[]", "not an object"),
        (b"Content-Length: 600\r\n\r\n" + b"[" * 300 + b"]" * 300, "too deeply"),
    ],
)
def test_the_debug_adapter(sent: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        Wire(io.BytesIO(sent), io.BytesIO()).receive()


def test_depth_is_counted_outside_of_texts() -> None:
    assert not is_deep(json.dumps({"text": "[" * 9000 + '\\"', "parts": [[]] * 900}).encode())
    assert is_deep(b'{"a":' * 300)


@pytest.mark.parametrize("body", [b"[" * 300, b""])
def test_the_language_server(body: bytes) -> None:
    given = Input(io.BytesIO(body + b"more"))
    assert given.read(len(body) or LONGEST + 1) == b"" and given.readline() == b""


def test_the_log_has_a_line_for_a_malformed_message() -> None:
    failure = ValueError("no JSON")
    found = logging.LogRecord("", logging.ERROR, "", 0, "Unable to handle message", (), (ValueError, failure, None))
    assert Lines().format(found) == "a message is malformed: ValueError: no JSON"


def test_a_client_that_has_gone_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    answers = Output(os.fdopen(writing, "wb"))
    answers.write(b"answer")
    answers.flush()
    answers.close()
