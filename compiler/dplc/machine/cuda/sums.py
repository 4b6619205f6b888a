"""Sums of what the points of a kernel give, in the order of `dpl/prims/sums.py`.

    for each block b of 1024 points, by a block of 256 threads:
        for each part of 256 points:
            shared[thread] = the number of point `thread` of the part
            (barrier)
            lane l of a warp:  sum += shared[l], shared[l + 32], ...
            (barrier)
        sums[b] = the sum of the lanes

All threads compute points; then a warp adds up the numbers of each sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import node
from dpl.prims.sums import BLOCK, LANES

from dplc.flat import term as f
from dplc.machine.cuda.device import DeviceFunction
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.llvm.writer import Values
from dplc.passes.device.kernels import THREADS


@node
class Sum:
    """A sum: the type of its numbers, where the sums of blocks go, and its place in shared memory."""

    type: str
    place: str
    shared: str

    @property
    def leaf(self) -> str:
        return SCALARS[self.type]

    def plus(self, a: str, b: str) -> str:
        return f"{'fadd' if self.type[0] == 'f' else 'add'} {self.leaf} {a}, {b}"


class SharedSums:
    """The sums of a kernel under construction."""

    def __init__(self, e: DeviceFunction, folds: Sequence[tuple[f.Num, str]]) -> None:
        self.e, self.w = e, e.w
        self.sums = [Sum(ty.name, place, f"@NAME.{i}") for i, (ty, place) in enumerate(folds)]
        self.thread, self.block, self.blocks = (self.special(name) for name in ("tid", "ctaid", "nctaid"))
        self.warp = self.w.let(f"lshr i64 {self.thread}, 5")
        self.lane = self.w.let(f"and i64 {self.thread}, {LANES - 1}")

    def special(self, name: str) -> str:
        return self.w.let(f"zext i32 {self.w.let(f'call i32 @llvm.nvvm.read.ptx.sreg.{name}.x()')} to i64")

    def variables(self) -> str:
        return "".join(
            f"{one.shared} = internal addrspace(3) global [{THREADS} x {one.leaf}] undef, align 16\n"
            for one in self.sums
        )

    def write(self, total: str, point: Callable[[str], Values]) -> None:
        """Writes the loop over all points; `point` gives the numbers of one."""
        w = self.w
        blocks = w.let(f"udiv i64 {w.add(total, str(BLOCK - 1))}, {BLOCK}")
        types = [one.leaf for one in self.sums]

        def step(state: Values) -> Values:
            (b,) = state
            start = w.let(f"mul nuw nsw i64 {b}, {BLOCK}")
            count = w.let(f"call i64 @llvm.smin.i64(i64 {w.let(f'sub i64 {total}, {start}')}, i64 {BLOCK})")

            def part(state: Values) -> Values:
                return self.part(state[0], state[1:], start, count, point)

            def unfinished(state: Values) -> str:
                return w.let(f"icmp slt i64 {state[0]}, {count}")

            inits = ["0", *[number(0, one.type) for one in self.sums]]
            last = w.loop(("i64", *types), inits, unfinished, part)[1:]
            for i, (one, own) in enumerate(zip(self.sums, last, strict=True)):
                self.by_warp(i, lambda one=one, own=own: self.store(one, own, b, count))
            return [w.let(f"add i64 {b}, {self.blocks}")]

        w.loop(("i64",), [self.block], lambda state: w.let(f"icmp slt i64 {state[0]}, {blocks}"), step)

    def part(self, first: str, before: Values, start: str, count: str, point: Callable[[str], Values]) -> Values:
        """Up to 256 points of a block; the next part, and the sums of this lane."""
        w, mine = self.w, self.w.add(first, self.thread)

        def compute() -> Values:
            for one, value in zip(self.sums, point(w.add(start, mine)), strict=True):
                w.do(f"store {one.leaf} {value}, ptr addrspace(3) {self.at(one, self.thread)}")
            return []

        w.choose(w.let(f"icmp slt i64 {mine}, {count}"), (), compute, list)
        w.do("call void @llvm.nvvm.barrier0()")
        after: Values = []
        for i, (one, own) in enumerate(zip(self.sums, before, strict=True)):
            turn = self.turn(i)
            after += w.choose(
                turn, (one.leaf,), lambda one=one, own=own: [self.lanes(one, own, first, count)], lambda own=own: [own]
            )
        w.do("call void @llvm.nvvm.barrier0()")
        return [w.let(f"add nuw nsw i64 {first}, {THREADS}"), *after]

    def at(self, one: Sum, i: str) -> str:
        return self.w.let(f"getelementptr {one.leaf}, ptr addrspace(3) {one.shared}, i64 {i}")

    def turn(self, i: int) -> str:
        """Tests whether this warp adds up the numbers of a sum."""
        return self.w.let(f"icmp eq i64 {self.warp}, {i % (THREADS // LANES)}")

    def by_warp(self, i: int, body: Callable[[], None]) -> None:
        def run() -> Values:
            body()
            return []

        self.w.choose(self.turn(i), (), run, list)

    def lanes(self, one: Sum, own: str, first: str, count: str) -> str:
        """Adds this lane's numbers of a part that begins with point `first` of a block."""
        w = self.w
        for j in range(0, THREADS, LANES):
            place = w.add(self.lane, str(j))
            value = w.let(f"load {one.leaf}, ptr addrspace(3) {self.at(one, place)}")
            there = w.let(f"icmp slt i64 {w.add(first, place)}, {count}")
            own = w.let(f"select i1 {there}, {one.leaf} {w.let(one.plus(own, value))}, {one.leaf} {own}")
        return own

    def store(self, one: Sum, own: str, block: str, count: str) -> None:
        w = self.w
        total = w.let(f"call {one.leaf} @rt.warp.{one.type}({one.leaf} {own}, i64 {count})")

        def put() -> Values:
            w.store(one.leaf, total, w.element(one.place, block, SIZES[one.leaf]))
            return []

        w.choose(w.let(f"icmp eq i64 {self.lane}, 0"), (), put, list)
