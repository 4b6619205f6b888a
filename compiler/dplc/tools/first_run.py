"""The first run of all, where no shipped runtime fits: it is compiled beside the check of the library and the program.

That takes seconds, as does the library's check, if none was shipped.  A process of its own makes the runtime's entry in
the cache; one that needs it earlier waits for it (`kept.once`).  A program that ends sooner does not wait, and the next
one finds the entry.
"""

from __future__ import annotations

import os

RUNTIME = "from dplc.machine.runtime import shared; shared.code()"


def make_runtime_beside() -> None:
    """Start the process if a cache that keeps entries has neither library nor runtime, no runtime was shipped, and
    there is a second processor."""
    from dpl.types import library

    if library.entry().exists() or (os.cpu_count() or 1) < 2:
        return
    from dpl.system import entries

    from dplc.machine.run import background
    from dplc.machine.runtime import shared

    folder = entries.folder()
    if not (entries.usable(folder) and os.access(folder, os.W_OK)):
        return
    if shared.entry().exists() or shared.as_shipped():
        return
    background.spawn(["-c", RUNTIME])
