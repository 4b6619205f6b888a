"""The optimiser's process: `python -m dplc.machine.run.optimise FILE NAME...` optimises functions of a program in the
cache (`tiers.py`)."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dplc.machine.object import cache_file
from dplc.machine.run.cache import packed
from dplc.machine.run.linked import better
from dplc.machine.run.tiers import read

NICE = 5  # the program itself goes first


def main(place: str, names: Sequence[str]) -> None:
    os.nice(NICE)
    try:
        with open(place, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another run of the program may be doing it
            optimise(place, names)
    except OSError:  # the file is gone, or the cache is full or read-only
        sys.exit(1)


def optimise(place: str, names: Sequence[str]) -> None:
    entry, program = cache_file.read(place), read(place)
    if entry is None or program is None or not set(names) - set(program.hot):
        return
    header, parts = packed(better(program, names))
    cache_file.write(Path(place), {"files": entry[0]["files"], **header}, parts)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
