"""The order of sums.  It is part of the language, so both engines, all vectors and any number of threads have it.

    fewer than FEW numbers          in order, from zero
    up to BLOCK numbers             number i is added to lane i mod LANES; then the upper half of the lanes is added to
                                    the lower half, until one is left
    more                            the sums of blocks of BLOCK; then neighbours are added, until one is left

Sums of rows add up each column: in order within a block of BLOCK rows, and then the blocks in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

FEW = 16
LANES = 32  # a power of two
BLOCK = 1024  # a multiple of LANES

Add = Callable[[Any, Any], Any]


def total(add: Add, zero: Any, numbers: Sequence[Any]) -> Any:
    """The sum of numbers."""
    if len(numbers) <= BLOCK:
        return block(add, zero, numbers)
    sums = [block(add, zero, part) for part in blocks(numbers)]
    while len(sums) > 1:
        pairs = [add(sums[i], sums[i + 1]) for i in range(0, len(sums) - 1, 2)]
        sums = pairs + sums[2 * len(pairs) :]
    return sums[0]


def block(add: Add, zero: Any, numbers: Sequence[Any]) -> Any:
    """The sum of at most BLOCK numbers."""
    if len(numbers) < FEW:
        return reduce(add, numbers, zero)
    lanes = [reduce(add, numbers[lane::LANES], zero) for lane in range(LANES)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = list(map(add, lanes[:half], lanes[half:]))
    return lanes[0]


def column(add: Add, zero: Any, numbers: Sequence[Any]) -> Any:
    """The sum of a column, as that of rows."""
    if len(numbers) <= BLOCK:
        return reduce(add, numbers, zero)
    return reduce(add, [reduce(add, part, zero) for part in blocks(numbers)])


def blocks(numbers: Sequence[Any]) -> list[Sequence[Any]]:
    return [numbers[i : i + BLOCK] for i in range(0, len(numbers), BLOCK)]
