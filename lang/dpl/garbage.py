"""Garbage collection where much is made and few cycles are: it looks for them seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 200_000


@contextmanager
def collected_seldom(after: int = ALLOCATIONS) -> Iterator[None]:
    """Collects after so many allocations, here and in what is called."""
    before = gc.get_threshold()
    gc.set_threshold(max(after, before[0]), 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
