"""Garbage collection where much is made and few cycles are: it looks for them seldom."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

COLLECT_AFTER = (200_000, 20, 100)


@contextmanager
def collected_seldom(after: int = COLLECT_AFTER[0]) -> Generator[None]:
    """Collects after so many allocations, here and in what is called."""
    before = gc.get_threshold()
    gc.set_threshold(max(after, before[0]), *COLLECT_AFTER[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def collecting(on: bool) -> Generator[None]:
    """Switches the search for cycles on or off.  Where there is much memory, a search takes a quarter of a second."""
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        yield
    finally:
        (gc.enable if before else gc.disable)()


@contextmanager
def set_aside() -> Generator[None]:
    """A search for cycles looks only at what is made from now on, not at what there is."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
