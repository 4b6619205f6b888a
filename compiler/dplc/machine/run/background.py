"""Processes that do slow work beside a program, and go on when it ends."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def spawn(words: Sequence[str]) -> int:
    """Start Python with these arguments; returns the number of the process, or 0.  It has no terminal, and signals for
    the program do not reach it."""
    null = [(os.POSIX_SPAWN_OPEN, i, os.devnull, os.O_RDWR, 0) for i in range(3)]
    try:
        return os.posix_spawn(
            sys.executable, [sys.executable, "-P", *words], os.environ, file_actions=null, setsid=True
        )
    except OSError:
        return 0
