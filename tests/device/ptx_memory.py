"""The memory of a launch: global, shared, and of each thread.  Every access is checked.

An address says where it belongs: each space has a window of its own, so generic addresses work.  Accesses must be
within a block and aligned.  A race is a place that two threads touch, one of them writing, not both by atomic
instructions, with nothing between that orders them: a barrier of their thread block, or fences of both.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from ptx_scalars import SIZES, TYPES, UNSIGNED, Bits, Fault, bits_of, numbers
from ptx_traffic import Traffic

SHARED, LOCAL, PARAM = 1 << 60, 1 << 61, 1 << 62  # the windows; what is below is global
TOP = 1 << 24  # where the stack of a thread begins in its window; it grows downwards
WINDOW = (1 << 60) - 1
Threads = NDArray[np.intp]  # numbers of threads


class Blocks:
    """Allocated blocks of global memory, by address."""

    def __init__(self) -> None:
        self.data: dict[int, NDArray[np.uint8]] = {}
        self._bases: list[int] | None = None

    def add(self, base: int, data: NDArray[np.uint8]) -> None:
        self.data[base], self._bases = data, None

    def remove(self, base: int) -> None:
        if self.data.pop(base, None) is None:
            raise Fault(f"memory at {base:#x} is given back, but nothing is there")
        self._bases = None

    @property
    def bases(self) -> list[int]:
        if self._bases is None:
            self._bases = sorted(self.data)
        return self._bases

    def before(self, address: int) -> int:
        """The number of the last block that begins at or before an address, in the order of addresses."""
        if (found := bisect(self.bases, address)) == 0:
            raise Fault(f"no memory at {address:#x}")
        return found - 1


@dataclass(slots=True)
class Touched:
    """Who touched each byte last: thread + 1, when, and whether atomically."""

    writer: NDArray[np.int32]
    written: NDArray[np.int32]
    reader: NDArray[np.int32]
    read: NDArray[np.int32]
    atomic: NDArray[np.bool_]

    @staticmethod
    def of(size: int) -> Touched:
        return Touched(*(np.zeros(size, np.int32) for _ in range(4)), np.zeros(size, bool))


@dataclass(slots=True)
class Memory:
    """What the threads of one launch see."""

    blocks: Blocks
    count: int
    block_of: NDArray[np.int64]  # of each thread
    shared: NDArray[np.uint8]  # a row for each thread block
    races: bool
    local: NDArray[np.uint8] = field(init=False)
    now: int = field(init=False, default=1)  # counts instructions
    ordered: NDArray[np.int32] = field(init=False)  # the last barrier of a thread
    fenced: NDArray[np.int32] = field(init=False)
    touched: dict[int, Touched] = field(default_factory=dict)
    traffic: Traffic | None = None

    def __post_init__(self) -> None:
        self.local = np.zeros((self.count, 0), np.uint8)
        self.ordered, self.fenced = np.zeros(self.count, np.int32), np.zeros(self.count, np.int32)

    def reserve(self, size: int) -> None:
        """Makes room for frames of so many bytes in all."""
        if self.local.shape[1] < size:
            more = np.full((self.count, max(2 * size, 64)), 0xA5, np.uint8)
            more[:, more.shape[1] - self.local.shape[1] :] = self.local
            self.local = more

    # ---- reading and writing

    def load(self, address: Bits, ty: str, threads: Threads, atomic: bool = False) -> Bits:
        made, size = np.empty(len(threads), np.uint64), SIZES[ty]
        for part, data, places, base in self.places(address, size, threads):
            self.note(base, data, places, size, threads[part], write=False, atomic=atomic)
            made[part] = extended(data.view(UNSIGNED[size])[places], ty)
        return made

    def store(self, address: Bits, value: Bits, ty: str, threads: Threads) -> None:
        value, size = spread(value, len(threads)), SIZES[ty]
        for part, data, places, base in self.places(address, size, threads):
            self.note(base, data, places, size, threads[part], write=True)
            data.view(UNSIGNED[size])[places] = value[part].astype(UNSIGNED[size])

    def aligned(self, address: Bits, size: int) -> None:
        if int(np.bitwise_or.reduce(address)) & (size - 1):
            raise Fault(f"an access of {size} bytes that is not aligned")

    def places(self, address: Bits, size: int, threads: Threads):
        """The accesses by block of memory: which of the threads, the bytes, the places as multiples of the size, and
        the address of the block, 0 for that of threads."""
        if not len(threads):
            return
        address = spread(address, len(threads))
        self.aligned(address, size)
        kinds: list[int] = [int(address.min()) >> 60, int(address.max()) >> 60]
        if kinds[0] == kinds[1]:
            del kinds[1]
        else:
            window = address >> np.uint64(60)
            kinds = [int(kind) for kind in np.unique(window)]
        for kind in kinds:
            part = slice(None) if len(kinds) == 1 else np.nonzero(window == np.uint64(kind))[0]
            if kind == 0:
                yield from self.in_global(address, part, size, threads)
                continue
            rows, data = (self.block_of[threads], self.shared) if kind == 1 else (threads, self.local)
            places = (address[part] & np.uint64(WINDOW)).astype(np.int64)
            if kind == 2:
                places -= TOP - data.shape[1]
            if (places < 0).any() or (places + size > data.shape[1]).any():
                raise Fault(f"{'shared' if kind == 1 else 'local'} access out of bounds: {int(places.max())}")
            width = data.shape[1] // size
            yield part, data.reshape(-1), rows[part] * width + places // size, SHARED if kind == 1 else 0

    def in_global(self, address: Bits, part, size: int, threads: Threads):
        wanted, bases = address[part], self.blocks.bases
        first, last = (self.blocks.before(int(end)) for end in (wanted.min(), wanted.max()))
        several = first != last
        if several:
            which = np.searchsorted(np.array(bases, np.uint64), wanted, "right") - 1
        for one in np.unique(which) if several else (first,):
            here = part
            if several:
                here = np.nonzero(which == one)[0] if isinstance(part, slice) else part[which == one]
            base = bases[one]
            data = self.blocks.data[base]
            places = (address[here] - np.uint64(base)).view(np.int64)
            if self.traffic is not None:
                self.traffic.note(address[here], size, threads[here])
            if int(places.max()) + size > len(data):
                raise Fault(f"global access out of bounds: byte {int(places.max())} of {len(data)} at {base:#x}")
            yield here, data[: len(data) // size * size], places // size, base

    # ---- atomic instructions, one thread after the other

    def atomic(self, how: str, address: Bits, operands: list[Bits], ty: str, threads: Threads) -> Bits:
        kind = np.dtype(TYPES[ty])
        made = np.empty(len(threads), np.uint64)
        operands = [spread(x, len(threads)) for x in operands]
        for part, data, places, base in self.places(address, kind.itemsize, threads):
            self.note(base, data, places, kind.itemsize, threads[part], write=True, atomic=True)
            cells = data.view(kind)
            for i, place in zip(np.arange(len(threads))[part], places):
                old = cells[place : place + 1].copy()
                cells[place] = atomically(how, old, [numbers(x[i : i + 1], ty) for x in operands])[0]
                made[i] = bits_of(old)[0]
        return made

    # ---- races

    def note(
        self, base: int, data: NDArray, places: NDArray, size: int, threads: Threads, write: bool, atomic: bool = False
    ) -> None:
        """Looks for races with earlier accesses to these places, and remembers this one."""
        if not self.races or base == 0 or not len(threads):
            return
        if base not in self.touched:
            self.touched[base] = Touched.of(len(data) + 8)
        seen, at, me = self.touched[base], places * size, (threads + 1).astype(np.int32)
        if write and not atomic and not (at[1:] > at[:-1]).all() and len(np.unique(at)) < len(at):
            raise Fault("a race: two threads of one instruction write one place")
        both = atomic & seen.atomic[at]
        self.check(seen.writer[at], seen.written[at], me, both, "written")
        if write:
            self.check(seen.reader[at], seen.read[at], me, both, "read")
            seen.writer[at], seen.written[at], seen.atomic[at] = me, self.now, atomic
        elif not atomic:
            seen.reader[at], seen.read[at] = me, self.now

    def check(self, other: NDArray, when: NDArray, me: NDArray, both: NDArray, what: str) -> None:
        """Raises Fault if an access of another thread is not ordered before the one of this thread."""
        suspects = (other > 0) & (other != me) & ~both
        if not suspects.any():
            return
        a, b, when = other[suspects] - 1, me[suspects] - 1, when[suspects]
        by_barrier = (self.block_of[a] == self.block_of[b]) & (self.ordered[b] > when)
        by_fences = (self.fenced[a] > when) & (self.fenced[b] > self.fenced[a])
        bad = ~(by_barrier | by_fences)
        if bad.any():
            raise Fault(f"a race: a place that thread {int(a[bad][0])} has {what} is used by thread {int(b[bad][0])}")


def spread(value: Bits, count: int) -> Bits:
    """The bits of an operand for each of so many threads."""
    return value if len(value) == count else np.broadcast_to(value, count)


def extended(cells: NDArray, ty: str) -> Bits:
    """What is loaded fills the register: signed types by their sign."""
    if ty[0] == "s" and cells.itemsize < 8:
        return cells.view(TYPES[ty]).astype(np.int64).view(np.uint64)
    return cells.astype(np.uint64)


def atomically(how: str, old: NDArray, x: list[NDArray]) -> NDArray:
    match how:
        case "add":
            return old + x[0]
        case "cas":
            return np.where(bits_of(old) == bits_of(x[0]), x[1], old)
        case "exch":
            return x[0]
        case "min":
            return np.minimum(old, x[0])
        case "max":
            return np.maximum(old, x[0])
        case "or":
            return old | x[0]
        case "and":
            return old & x[0]
    raise Fault(f"an atomic operation that is not known: {how}")
