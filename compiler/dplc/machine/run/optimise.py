"""The optimiser's process: `python -m dplc.machine.run.optimise FILE` optimises a program of the cache (`tiers.py`)."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import zlib
from pathlib import Path

from dplc.machine.object import cache_file
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.run.cache import packed
from dplc.machine.run.linked import linked
from dplc.machine.run.tiers import read

NICE = 5  # the program itself goes first


def main(place: str) -> None:
    os.nice(NICE)
    try:
        with open(place, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another run of the program may be doing it
            optimise(place)
    except OSError:  # the file is gone, or the cache is full or read-only
        sys.exit(1)


def optimise(place: str) -> None:
    entry, quick = cache_file.read(place), read(place)
    if entry is None or quick is None or not quick.text:
        return
    code = assemble(zlib.decompress(quick.text).decode("utf-8", "surrogatepass"), flat=True)
    header, parts = packed(linked(Compiled(code, quick.sites, quick.warnings)))
    cache_file.write(Path(place), {"files": json.loads(entry[0])["files"], **header}, parts)


if __name__ == "__main__":
    main(sys.argv[1])
