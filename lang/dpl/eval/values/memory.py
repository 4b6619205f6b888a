"""How much memory there is, and whether an array has room in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpl import host
from dpl.diagnostics import DplError

ELEMENT = 8  # bytes; Python's numbers take more
SLICE = 1 << 20  # elements between looks at the memory
MOST_MEMORY = 0.6  # of what there is


class Room:
    """A number of elements, if there can be so many.  All that makes arrays of a size that programs choose asks."""

    def __init__(self) -> None:
        self.unseen = 0  # elements since the last look

    def __call__(self, count: int) -> int:
        if ELEMENT * count > host.current.memory():
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
    return host.current.resident() > MOST_MEMORY * host.current.memory()
