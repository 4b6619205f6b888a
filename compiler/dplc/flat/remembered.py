"""Analyses of blocks that are done once: blocks do not change, and most stages keep most of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dplc.flat import term as f

Found = TypeVar("Found")
Given = TypeVar("Given")

LATEST = 4  # assumptions of a fixpoint


def facts_of(block: f.Block) -> dict:
    """What is known of a block, by analysis."""
    try:
        return block.facts
    except AttributeError:  # this is the first analysis of the block
        block.facts = {}  # pyrefly: ignore[read-only]  (the block stays what it is)
        return block.facts


def remembered(analysis: Callable[[f.Block], Found]) -> Callable[[f.Block], Found]:
    """The analysis, whose result is kept with the block."""

    def found(block: f.Block) -> Found:
        facts = facts_of(block)
        if analysis not in facts:
            facts[analysis] = analysis(block)
        return facts[analysis]

    return found


def remembered_given(analysis: Callable[[f.Block, Given], Found]) -> Callable[[f.Block, Given], Found]:
    """The analysis of a block under an assumption; the results for the latest assumptions are kept with the block.  A
    fixpoint goes through the same ones in each stage that leaves the block as it is."""

    def found(block: f.Block, given: Given) -> Found:
        kept: list[tuple[Given, Found]] = facts_of(block).setdefault(analysis, [])
        for before, result in kept:
            if before == given:
                return result
        result = analysis(block, given)
        kept[:] = [(given, result), *kept[: LATEST - 1]]
        return result

    return found
