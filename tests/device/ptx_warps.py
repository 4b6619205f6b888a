"""What threads of a warp exchange: shfl, match, vote.  `threads` are the threads at the instruction, in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WARP = 32
Threads = NDArray[np.int64]
Bits = NDArray[np.uint64]


def shuffled(how: str, by: Bits, clamp: Bits, threads: Threads) -> tuple[Threads, NDArray[np.bool_]]:
    """The threads whose values are taken, and whether their lanes are within the segment; the thread itself if not."""
    lane, step = threads % WARP, by.astype(np.int64) & 31
    segment, most = clamp.astype(np.int64) >> 8 & 31, clamp.astype(np.int64) & 31
    low = lane & segment
    most = low | most & ~segment
    other = {"up": lane - step, "down": lane + step, "bfly": lane ^ step, "idx": low | step & ~segment}[how]
    fine = other >= most if how == "up" else other <= most
    return np.where(fine, threads - lane + other, threads), fine


def matched(value: Bits, threads: Threads) -> Bits:
    """match.any: the lanes with the same value."""
    lanes = np.zeros(len(threads), np.uint64)
    for here in warps(threads):
        same = value[here][:, None] == value[here][None, :]
        lanes[here] = same @ bits_of(threads[here])
    return lanes


def voted(how: str, value: NDArray[np.bool_], threads: Threads) -> Bits:
    made = np.zeros(len(threads), np.uint64)
    for here in warps(threads):
        ballot = bits_of(threads[here])[value[here]].sum(dtype=np.uint64)
        made[here] = {"ballot": ballot, "any": value[here].any(), "all": value[here].all()}[how]
    return made


def warps(threads: Threads) -> list[Threads]:
    """The places of the threads of each warp."""
    return [np.nonzero(threads // WARP == warp)[0] for warp in np.unique(threads // WARP)]


def bits_of(threads: Threads) -> Bits:
    return np.uint64(1) << (threads % WARP).astype(np.uint64)
