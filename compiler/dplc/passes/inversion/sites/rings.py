"""Places on rings beside a point that adds at a place on a ring: they are so many steps from that place.

i = mod (p - 1) n;  e = mod (i + 1) n;  w = mod (i - 1) n        =>        e = p;  w = mod (p - 2) n
"""

from __future__ import annotations

from collections.abc import Mapping

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine


def steps_from(
    affine: Affine, ring: f.Op, offsets: Mapping[str, int], lengths: Mapping[str, f.Atom]
) -> tuple[str, int] | None:
    """The index of a place on a ring, and how many steps it is from the place at the offset of that index; None if that
    is not known, or might be more than once round the ring."""
    index, constant, _ = affine.on_ring(ring) or ("", 0, 0)
    if index not in lengths or affine.sum(lengths[index]) != affine.sum(ring.args[1]):
        return None
    length, steps = affine.sum(ring.args[1]), constant - offsets[index]
    least = length[ONE] if set(length) == {ONE} else 1
    return (index, steps) if abs(steps) <= least else None
