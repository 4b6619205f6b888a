"""The memory limit: checks that a new array fits into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpl import host
from dpl.diagnostics import DplError

ELEMENT = 8  # bytes; Python's numbers take more
SLICE = 1 << 20  # elements between checks of memory
MOST_MEMORY = 0.6  # a share of the machine's memory


class Room:
    """Returns a number of elements, or raises R0802 if there is no memory for them.  Every function that makes an array
    of a size chosen by the program must call it."""

    def __init__(self) -> None:
        self.unseen = 0  # elements since the last check
        self.most: int | None = None  # the elements that may be asked for at once, if memory is not the limit

    def __call__(self, count: int) -> int:
        if ELEMENT * count > host.current.memory() or (self.most is not None and count > self.most):
            raise out_of_memory(ELEMENT * count)
        self.unseen += count
        if self.unseen > SLICE:
            self.unseen = 0
            if is_full():
                raise out_of_memory()
        return count


room = Room()


def out_of_memory(asked: int | None = None) -> DplError:
    """R0802, with the number of bytes that were asked for, if one request was too much."""
    return DplError.at("R0802", "out of memory", helps=(f"{asked} bytes were asked for at once",) if asked else ())


def gathered(count: int, element: Callable[[int], Any]) -> list:
    """The elements 0 ... count - 1.  Raises R0802 when memory runs out."""
    found: list = []
    while len(found) < count:
        some = min(SLICE, count - len(found))
        found += [element(i) for i in range(len(found), len(found) + some)]
        room(some)
    return found


def is_full() -> bool:
    """True if the process holds as much of the machine's memory as it may."""
    return host.current.resident() > MOST_MEMORY * host.current.memory()
