"""What messages of JSON may be, for the servers that read them from a client."""

from __future__ import annotations

import re
from itertools import accumulate

LONGEST = 1 << 26  # bytes of a message
DEEPEST = 200  # lists and objects inside of each other
STRINGS = re.compile(rb'"(?:[^"\\\\]|\\\\.)*+"?', re.DOTALL)


def is_deep(body: bytes) -> bool:
    """Whether JSON is nested so deeply that reading it could overflow the stack."""
    steps = (1 if mark in b"[{" else -1 for mark in STRINGS.sub(b"", body) if mark in b"[]{}")
    return body.count(b"[") + body.count(b"{") > DEEPEST and max(accumulate(steps), default=0) > DEEPEST
