"""Analyses of blocks that are done once: blocks do not change, and most stages keep most of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dplc.flat import term as f

Found = TypeVar("Found")
Given = TypeVar("Given")


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
    """The analysis of a block under an assumption; the result for the latest assumption is kept with the block."""

    def found(block: f.Block, given: Given) -> Found:
        facts = facts_of(block)
        before, result = facts.get(analysis, (None, None))
        if before != given:
            result = analysis(block, given)
            facts[analysis] = given, result
        return result

    return found
