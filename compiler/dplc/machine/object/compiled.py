"""A compiled program, as it is kept in the cache and loaded."""

from __future__ import annotations

from dpl.node import node


@node
class Compiled:
    """Object code, the sites where the program may fail (`Sites` as JSON), and its warnings (pickled; empty if there
    are none)."""

    code: bytes
    sites: str
    warnings: bytes = b""
