"""Traffic to global memory: what the threads of a launch ask for, and what the memory moves for it.

A warp, 32 threads, moves whole sectors of 32 bytes: neighbours that ask for neighbours move what they ask for, and
those that ask for places far apart move a sector each.  A cache may keep a sector until it is asked for again, so what
a launch moves lies between `distinct` and `moved`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SECTOR = 5  # 32 bytes
WARP = 5  # 32 threads
FAR = 42  # bits of a sector's number


@dataclass(slots=True)
class Traffic:
    """Bytes of one launch."""

    asked: int = 0  # by threads
    moved: int = 0  # by warps, in sectors
    sectors: list[NDArray[np.uint64]] = field(default_factory=list)

    def note(self, address: NDArray[np.uint64], size: int, threads: NDArray[np.intp]) -> None:
        """Notes an access: which threads ask for `size` bytes at which addresses."""
        sector = address >> np.uint64(SECTOR)
        warps = (threads >> WARP).astype(np.uint64) << np.uint64(FAR)
        self.asked += size * len(threads)
        self.moved += len(np.unique(warps | sector)) << SECTOR
        self.sectors.append(np.unique(sector))

    @property
    def distinct(self) -> int:
        """Bytes in the sectors that the launch touches."""
        return len(np.unique(np.concatenate(self.sectors))) << SECTOR if self.sectors else 0
