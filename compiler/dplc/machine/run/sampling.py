"""Samples of a native program while it runs: where it was at every fourth millisecond of processor time, and who had
called.

The timer's signal is handled by a few lines of machine code, which note the program counter and walk the frame pointers
that our code keeps.  The program itself is not changed.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from dplc.machine.llvm import api, target
from dplc.machine.llvm.sampler import REGISTERS
from dplc.machine.run.clock import sampling
from dplc.machine.run.jit import new_jit

INTERVAL = 0.004  # seconds of processor time: a sample takes 25 to 100 us of it, most of them for the signal
MOST = 1 << 18  # samples
DEPTH = 48  # addresses of each
SCANNED = 256  # words of the stack in which the caller of a function is looked for that keeps no frame pointer
NOBODY = 1  # in place of the caller's address, if none was found

HANDLER = """
define void @sample(i32 %signal, ptr %info, ptr %context) {{
  %pc.at = getelementptr i8, ptr %context, i64 {pc}
  %pc = load i64, ptr %pc.at
  %fp.at = getelementptr i8, ptr %context, i64 {fp}
  %first = load i64, ptr %fp.at
  %sp.at = getelementptr i8, ptr %context, i64 {sp}
  %sp = load i64, ptr %sp.at
  %n = atomicrmw add ptr inttoptr (i64 {count} to ptr), i64 1 monotonic
  %room = icmp ult i64 %n, {most}
  br i1 %room, label %put, label %out
put:
  %offset = mul i64 %n, {size}
  %row = getelementptr i8, ptr inttoptr (i64 {buffer} to ptr), i64 %offset
  store i64 %pc, ptr %row
  %pc.inside = sub i64 %pc, {low}
  %ours = icmp ult i64 %pc.inside, {length}
  %cell.1 = getelementptr i64, ptr %row, i64 1
  store i64 1, ptr %cell.1
  %end = select i1 %ours, i64 %first, i64 -1
  br label %scan
scan:
  %j = phi i64 [ 0, %put ], [ %j.next, %look.up ]
  %more = icmp ult i64 %j, {scanned}
  %j.bytes = mul i64 %j, 8
  %place = add i64 %sp, %j.bytes
  %within = icmp ult i64 %place, %end
  %both = and i1 %more, %within
  br i1 %both, label %look.up, label %scanned
look.up:
  %word.at = inttoptr i64 %place to ptr
  %word = load i64, ptr %word.at
  %word.inside = sub i64 %word, {low}
  %called = icmp ult i64 %word.inside, {length}
  %j.next = add i64 %j, 1
  br i1 %called, label %caller, label %scan
caller:
  store i64 %word, ptr %cell.1
  br label %scanned
scanned:
  br label %walk
walk:
  %k = phi i64 [ 2, %scanned ], [ %k.next, %keep ]
  %fp = phi i64 [ %first, %scanned ], [ %up, %keep ]
  %below = phi i64 [ %sp, %scanned ], [ %fp, %keep ]
  %deeper = icmp ult i64 %k, {depth}
  %distance = sub i64 %fp, %below
  %near = icmp ult i64 %distance, 1073741824
  %odd = and i64 %fp, 7
  %even = icmp eq i64 %odd, 0
  %good = and i1 %near, %even
  %go = and i1 %good, %deeper
  br i1 %go, label %look, label %out
look:
  %frame = inttoptr i64 %fp to ptr
  %back.at = getelementptr i8, ptr %frame, i64 8
  %back = load i64, ptr %back.at
  %back.inside = sub i64 %back, {low}
  %known = icmp ult i64 %back.inside, {length}
  br i1 %known, label %keep, label %out
keep:
  %cell = getelementptr i64, ptr %row, i64 %k
  store i64 %back, ptr %cell
  %up = load i64, ptr %frame
  %k.next = add i64 %k, 1
  br label %walk
out:
  ret void
}}
"""


class Samples:
    """What was sampled of the code from address `low` on."""

    def __init__(self, low: int, length: int) -> None:
        self.buffer = (ctypes.c_int64 * (MOST * DEPTH))()  # the system commits only the pages that are used
        self.count = ctypes.c_int64(0)
        self.precise = True  # whether the clock is (`clock.py`)
        pc, fp, sp = REGISTERS[platform.machine()]
        text = HANDLER.format(
            pc=pc, fp=fp, sp=sp, count=ctypes.addressof(self.count), most=MOST, size=8 * DEPTH, low=low, length=length,
            buffer=ctypes.addressof(self.buffer), depth=DEPTH, scanned=SCANNED,
        )  # fmt: skip
        target.start()
        module = f'target triple = "{api.default_triple()}"\n{text}'
        self.linked = api.Linked(new_jit(), "sampling", [(api.IR, module.encode())], ["sample"])

    def stacks(self) -> Iterator[tuple[int, int, list[int]]]:
        """Each sample: where the program was; the address that a leaf function or one of C would return to, or NOBODY;
        and the return addresses of the frames, innermost first."""
        for n in range(min(self.count.value, MOST)):
            pc, caller, *rest = self.buffer[n * DEPTH : (n + 1) * DEPTH]
            yield pc, caller, rest[: rest.index(0)] if 0 in rest else rest

    @contextmanager
    def taken(self) -> Generator[None]:
        """Takes samples while this lasts."""
        with sampling(self.linked.addresses["sample"], INTERVAL) as self.precise:
            yield
