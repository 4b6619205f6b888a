"""What a program whose blocks are watched (`rt/watched.os.rt`) has noted: who made how many, and what lived when."""

from __future__ import annotations

import ctypes

from dpl.node import node, record

from dplc.machine.run.linked import WATCHED
from dplc.machine.run.program import LoadedImage

WORDS = 46  # of a maker: hash, blocks, bytes, bytes that live, bytes that did at the peak, addresses, each of them
HEAD = 6


@node
class Maker:
    """Return addresses, innermost first; the blocks that were made there, all their bytes, and how many lived at the
    peak.  Headers count."""

    addresses: tuple[int, ...]
    blocks: int
    bytes: int
    at_peak: int


@record
class Watched:
    """The makers, and the sums of all: blocks, their bytes, and the most that lived at a time."""

    makers: list[Maker]
    blocks: int
    bytes: int
    peak: int


def watched(loaded: LoadedImage) -> Watched:
    """Reads the tables of the program's allocator from its memory."""
    start, count, _, peak, all_bytes, blocks = (ctypes.c_int64 * 6).from_address(
        loaded.base + loaded.image.exports[WATCHED]
    )
    makers = []
    for number in range(count if start else 0):
        _, made, size, _, at_peak, depth, *addresses = (ctypes.c_int64 * WORDS).from_address(start + 8 * WORDS * number)
        if made:
            makers.append(Maker(tuple(addresses[:depth]), made, size, at_peak))
    return Watched(makers, blocks, all_bytes, peak)
