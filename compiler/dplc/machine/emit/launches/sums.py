"""The numbers that a launch sums, of one type: side by side, so one more launch adds up the sums of blocks of all of
them, and one copy takes all of them to the host.

    sums of blocks:   [first number's ...] [second number's ...] ...       results:  first, second ...
"""

from __future__ import annotations

from typing import Protocol

from dplc.flat import term as f
from dplc.machine.emit.module.layout import leaves, struct
from dplc.machine.llvm.writer import Values, Writer
from dplc.passes.device.kernels import THREADS


class Launch(Protocol):
    """What is used of a launch under construction."""

    w: Writer

    def temporary(self, elem: f.Type, count: str) -> str: ...
    def later(self, name: str, ty: f.Type, threads: str, given: list[str], unless_one: str = "") -> None: ...


class Totals:
    """`count` numbers of a type, each of so many blocks."""

    def __init__(self, launch: Launch, ty: f.Type, blocks: str, count: int) -> None:
        self.launch, self.w, self.ty, self.blocks, self.count = launch, launch.w, ty, blocks, count
        w, self.size = launch.w, struct(ty).size
        self.each = w.let(f"call i64 @llvm.umax.i64(i64 {blocks}, i64 1)")
        self.sums = launch.temporary(ty, w.mul(self.each, str(count)))
        self.results = self.sums if count == 1 else launch.temporary(ty, str(count))
        several = w.let(f"icmp sgt i64 {blocks}, 1")
        self.place = w.let(f"select i1 {several}, i64 {self.results}, i64 {self.sums}")
        self.slot = w.slot(f"[{self.size * count} x i8]")
        self.taken = 0

    def next(self) -> tuple[str, int]:
        """The place of the sums of blocks of the next number, and where it is among the numbers."""
        at, self.taken = self.taken, self.taken + 1
        return self.w.add(self.sums, self.w.mul(self.each, str(at * self.size))), at

    def complete(self) -> None:
        """Adds up the sums of blocks, when those are there."""
        given = [self.sums, self.results, self.blocks, str(self.count)]
        self.launch.later("tree", self.ty, str(THREADS * self.count), given, unless_one=self.blocks)

    def fetch(self) -> None:
        """Asks for the numbers, which come to the host with others that are asked for."""
        self.w.do(f"call void @rt.fetch_later(ptr {self.slot}, i64 {self.place}, i64 {self.size * self.count})")

    def on_device(self, at: int) -> str:
        """The address of a number on the device."""
        return self.w.add(self.place, str(at * self.size))

    def on_host(self, at: int) -> Values:
        """A number, once the host has waited."""
        return [self.w.load(leaves(self.ty)[0], self.w.at(self.slot, at * self.size))]
