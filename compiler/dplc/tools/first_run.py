"""The first run of all, where no shipped runtime fits: it is compiled beside the check of the library and the program.

That takes seconds, as does the library's check, if none was shipped.  A process of its own makes the runtime's entry in
the cache; who needs it earlier waits for it (`kept.once`).  A program that ends sooner does not wait, and the next one
finds the entry.
"""

from __future__ import annotations

import os
import sys

RUNTIME = "from dplc.machine.runtime import shared; shared.code()"


def make_runtime_beside() -> int:
    """Start the process if a cache that keeps entries has neither library nor runtime, no runtime was shipped, and
    there is a second processor; returns its number, or 0.  It has no terminal, and signals for the program do not reach
    it."""
    from dpl.types import library

    if library.entry().exists() or (os.cpu_count() or 1) < 2:
        return 0
    from dpl.system import entries

    from dplc.machine.runtime import shared

    folder = entries.folder()
    if not (entries.usable(folder) and os.access(folder, os.W_OK)):
        return 0
    if shared.entry().exists() or shared.as_shipped():
        return 0
    null = [(os.POSIX_SPAWN_OPEN, i, os.devnull, os.O_RDWR, 0) for i in range(3)]
    try:
        return os.posix_spawn(
            sys.executable, [sys.executable, "-P", "-c", RUNTIME], os.environ, file_actions=null, setsid=True
        )
    except OSError:
        return 0
