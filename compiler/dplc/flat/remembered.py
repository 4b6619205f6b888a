"""Analyses of blocks that are done once: blocks do not change, and most stages keep most of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dplc.flat import term as f

Found = TypeVar("Found")


def remembered(analysis: Callable[[f.Block], Found]) -> Callable[[f.Block], Found]:
    """The analysis, whose result is kept with the block."""

    def found(block: f.Block) -> Found:
        try:
            facts = block.facts
        except AttributeError:  # this is the first analysis of the block
            facts = block.facts = {}  # pyrefly: ignore[read-only]  (the block stays what it is)
        if analysis not in facts:
            facts[analysis] = analysis(block)
        return facts[analysis]

    return found
