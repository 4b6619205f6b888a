"""A sort that a device does: runs of keys are merged by pairs, and each point finds one key of the result by itself.

Which keys of the left run are among the first r of the merged ones is found by binary search (merge path: Green,
McColl and Bader 2012).  All keys differ.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer

SORTED = "sorted keys"
KEYS = f.Arr(f.I64, 1)


def merge_sort(supply: f.Supply) -> f.Fn:
    """The function of the host that sorts an array of keys."""
    b = Builder(supply)
    keys = b.var("keys", KEYS)
    count = b.op("dim", (keys,), k=0)
    runs, width = b.var("runs", KEYS), b.var("width", f.I64)
    with b.inside() as binds:
        cond = block_of(binds, (b.op("lt", (width, count)),))
    with b.inside() as binds:
        merged = _merged(b, runs, width, count)
        body = block_of(binds, (merged, b.op("shift_left", (width, integer(1)))))
    made = b.bind(f.While((runs, width), (keys, integer(1)), cond, body), (KEYS, f.I64), "sorted")
    return f.Fn(SORTED, (keys,), (KEYS,), block_of(b.binds, made[:1]))


def _merged(b: Builder, runs: f.Var, width: f.Var, count: f.Var) -> f.Var:
    """The array, whose runs of some width are merged by pairs."""
    i = b.var("i", f.I64)
    with b.inside() as binds:
        both = b.op("shift_left", (width, integer(1)))
        rank = b.op("bit_and", (i, b.op("sub", (both, integer(1)))))
        left = b.op("sub", (i, rank))
        right = b.op("min", (b.op("add", (left, width)), count))
        sizes = b.op("sub", (right, left)), b.op("sub", (b.op("min", (b.op("add", (left, both)), count)), right))
        x = _of_left(b, runs, left, right, sizes, rank)
        y = b.op("sub", (rank, x))
        one, other = (_key(b, runs, start, at, size) for start, at, size in
                      ((left, x, sizes[0]), (right, y, sizes[1])))  # fmt: skip
        less = b.op("or", (b.op("ge", (y, sizes[1])), b.op("lt", (one, other))))
        take = b.op("and", (b.op("lt", (x, sizes[0])), less))
        body = block_of(binds, (b.op("select", (take, one, other)),))
    return b.one(f.Par(((i, count),), body, (f.Out("keep"),)), KEYS, "merged")


def _key(b: Builder, runs: f.Var, start: f.Var, at: f.Var, size: f.Var) -> f.Var:
    """A key of a run; its last one, or the one before it, if it has no such key."""
    last = b.op("sub", (size, integer(1)))
    return b.op("index", (runs, b.op("add", (start, b.op("min", (at, last))))), unchecked=True)


def _of_left(
    b: Builder, runs: f.Var, left: f.Var, right: f.Var, sizes: tuple[f.Var, f.Var], rank: f.Var
) -> f.Var:  # fmt: skip
    """How many of the first `rank` keys are in the left run."""
    first = b.op("max", (integer(0), b.op("sub", (rank, sizes[1]))))

    def less(mid: f.Var) -> f.Var:
        there = b.op("sub", (b.op("sub", (rank, mid)), integer(1)))
        keys = [b.op("index", (runs, b.op("add", pair)), unchecked=True) for pair in ((left, mid), (right, there))]
        return b.op("lt", (keys[0], keys[1]))

    return bisect(b, first, b.op("min", (rank, sizes[0])), less)


def bisect(b: Builder, first: f.Atom, last: f.Atom, less: Callable[[f.Var], f.Var]) -> f.Var:
    """The first of some numbers for which `less` does not hold, by binary search."""
    low, high = b.var("low", f.I64), b.var("high", f.I64)
    with b.inside() as binds:
        cond = block_of(binds, (b.op("lt", (low, high)),))
    with b.inside() as binds:
        mid = b.op("shift_right", (b.op("add", (low, high)), integer(1)))
        test = less(mid)
        up = b.op("select", (test, b.op("add", (mid, integer(1))), low))
        body = block_of(binds, (up, b.op("select", (test, high, mid))))
    return b.bind(f.While((low, high), (first, last), cond, body), (f.I64, f.I64), "first")[0]
