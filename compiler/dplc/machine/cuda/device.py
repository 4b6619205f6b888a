"""Functions of flat as device code: the emitter of the host, with what a thread of a GPU does in another way.

Calls have no debug locations, as the host tells failures.  What a thread makes is not seen outside of it, so owners
are counted in its own arena only.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.prims.sums import BLOCK, LANES

from dplc.flat import term as f
from dplc.machine.emit.function import FunctionEmitter
from dplc.machine.emit.module.memory import Droppers
from dplc.machine.emit.module.unit import Unit
from dplc.machine.emit.points.sums import Steps
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.llvm.writer import Values, Writer
from dplc.passes.device.escape import staying

LEVELS = 64  # of a tree of blocks: more than any sum has
SMALL = 1024  # bytes of an array in the frame
SHIFT = BLOCK.bit_length() - 1


class DeviceDroppers(Droppers):
    """Reference counts of a thread: of the blocks in its arena."""

    def uncounted(self, w: Writer, ty: f.Type, owner: str) -> str:
        return w.let(f"call i1 @rt.foreign(ptr {owner})")

    def one_less(self, w: Writer, cell: str) -> None:
        def less() -> Values:
            super(DeviceDroppers, self).one_less(w, cell)
            return []

        w.choose(w.let(f"call i1 @rt.foreign(ptr {cell})"), (), list, less)


class DeviceUnit(Unit):
    """The module of a program's kernels."""

    def location(self, scope: str, line: int) -> str:
        return ""

    def scope(self, fn: f.Fn) -> str:
        return ""

    def convention(self, name: str) -> str:
        return "fastcc"


class LaneSums:
    """Sums of floats while a loop of one thread computes them.  The state is how many numbers there were; the sums of
    the 32 lanes of a block, and of blocks, are in the frame."""

    TYPES = ("i64",)
    START = ("0",)

    def __init__(self, e: FunctionEmitter, types: Sequence[str]) -> None:
        self.e, self.types, w = e, types, e.w
        self.lanes = [w.slot(f"[{LANES} x {SCALARS[ty]}]") for ty in types]
        self.sums = [w.slot(f"[{LEVELS} x {SCALARS[ty]}]") for ty in types]
        for ty, lanes in zip(types, self.lanes, strict=True):
            size = LANES * SIZES[SCALARS[ty]]
            w.do(f"call void @llvm.memset.p0.i64(ptr align 16 {lanes}, i8 0, i64 {size}, i1 false)")

    def run(self, length: str, steps: Steps, types: Sequence[str], inits: Values) -> Values:
        """for i < length, with the state of the sums, and then one of `types`.  Steps are done one by one."""
        w = self.e.w

        def put(i: str, state: Values) -> Values:
            after = steps.at(i, state[1:])
            count = state[0]
            lane = w.let(f"and i64 {count}, {LANES - 1}")
            for ty, lanes, value in zip(self.types, self.lanes, after, strict=False):
                at = w.let(f"getelementptr inbounds {SCALARS[ty]}, ptr {lanes}, i64 {lane}")
                w.store(SCALARS[ty], w.let(f"fadd {SCALARS[ty]} {w.load(SCALARS[ty], at)}, {value}"), at)
            count = w.let(f"add nuw nsw i64 {count}, 1")
            full = w.let(f"icmp eq i64 {w.let(f'and i64 {count}, {BLOCK - 1}')}, 0")
            w.choose(full, (), lambda: self._end(w.let(f"lshr i64 {count}, {SHIFT}"), str(BLOCK)), list)
            return [count, *after[len(self.types) :]]

        return w.count_to(length, put, ("i64", *types), inits)

    def _end(self, blocks: str, count: str) -> Values:
        """The end of a block of `count` numbers; it is number `blocks` - 1."""
        w, before = self.e.w, self.e.w.let(f"sub i64 {blocks}, 1")
        for ty, lanes, sums in zip(self.types, self.lanes, self.sums, strict=True):
            total = w.let(f"call {SCALARS[ty]} @rt.whole_block.{ty}(ptr {lanes}, i64 {count})")
            w.do(f"call void @rt.add_block.{ty}(ptr {sums}, i64 {before}, {SCALARS[ty]} {total})")
        return []

    def totals(self, state: Values) -> Values:
        w, (count,) = self.e.w, state
        rest = w.let(f"and i64 {count}, {BLOCK - 1}")
        blocks = w.let(f"lshr i64 {w.let(f'add i64 {count}, {BLOCK - 1}')}, {SHIFT}")
        w.choose(w.let(f"icmp ne i64 {rest}, 0"), (), lambda: self._end(blocks, rest), list)
        some = w.let(f"icmp ne i64 {count}, 0")
        leaves = [SCALARS[ty] for ty in self.types]

        def all_() -> Values:
            return [w.let(f"call {SCALARS[ty]} @rt.all_blocks.{ty}(ptr {sums}, i64 {blocks})")
                    for ty, sums in zip(self.types, self.sums, strict=True)]  # fmt: skip

        return w.choose(some, leaves, all_, lambda: [number(0.0, ty) for ty in self.types])


class DeviceFunction(FunctionEmitter):
    """A function that threads of a GPU call."""

    def __init__(self, unit: Unit, fn: f.Fn) -> None:
        super().__init__(unit, fn)
        self.spread = True  # its loops are not spread over the host's threads
        self.staying = staying(fn.body)
        self.stays = False  # whether what is being written makes arrays that stay in its block

    def rhs(self, bind: f.Bind) -> Values:
        made = {var.name for var in bind.vars if not isinstance(var.ty, f.Num)}  # sums beside them need no memory
        outer, self.stays = self.stays, bool(made) and made <= self.staying
        values = super().rhs(bind)
        self.stays = outer
        return values

    def begin_point(self) -> None:
        """What a point has made before is gone."""
        self.w.do("call void @rt.begin_point()")

    def memory(self, size: str, elem: f.Type) -> Values:
        """Small arrays that stay in their block are in the frame, and have no owners."""
        if self.stays and size.isdigit() and int(size) <= SMALL:
            return ["null", self.w.slot(f"[{max(int(size), 1)} x i8]")]
        return super().memory(size, elem)

    def block_sums(self, types: Sequence[str], count: str) -> LaneSums:
        return LaneSums(self, types)

    def site(self, span: f.Span, extra: str = "") -> int:
        return 0  # the host tells where

    def place_of(self, span: f.Span) -> str:
        return ""

    def with_locations(self, lines: list[str]) -> list[str]:
        return lines

    def _check_depth(self) -> list[str]:
        return [
            "  %here = alloca i64",
            "  %room = call i1 @rt.has_stack(ptr %here)",
            "  br i1 %room, label %start, label %deep, !prof !0",
            "deep:",
            "  call void @rt.fail(i64 0, i64 0, i64 0, i64 0, ptr null, i64 0)",
            "  unreachable",
        ]
