"""How much memory there is, and whether an array has room in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from dpl.diagnostics import DplError

ELEMENT = 8  # bytes; Python's numbers take more
SLICE = 1 << 20  # elements between looks at the memory
MOST_MEMORY = 0.6  # of what there is


class Room:
    """A number of elements, if there can be so many.  All that makes arrays of a size that programs choose asks."""

    def __init__(self) -> None:
        self.unseen = 0  # elements since the last look

    def __call__(self, count: int) -> int:
        if ELEMENT * count > available():
            raise out_of_memory(ELEMENT * count)
        self.unseen += count
        if self.unseen > SLICE:
            self.unseen = 0
            if is_full():
                raise out_of_memory()
        return count


room = Room()


def out_of_memory(asked: int | None = None) -> DplError:
    return DplError.at("R0802", "out of memory", helps=(f"{asked} bytes were asked for at once",) if asked else ())


def gathered(count: int, element: Callable[[int], Any]) -> list:
    """The elements with these numbers, as long as there is room."""
    found: list = []
    while len(found) < count:
        some = min(SLICE, count - len(found))
        found += [element(i) for i in range(len(found), len(found) + some)]
        room(some)
    return found


def is_full() -> bool:
    return resident() > MOST_MEMORY * available()


@cache
def available() -> int:
    """Bytes of memory that there are for us."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return min(physical, int(file.read()))
    except (OSError, ValueError):  # no container, or one without a limit
        return physical


def resident() -> int:
    """Bytes of memory in use."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # a system without /proc: only the number of frames is limited
        return 0
