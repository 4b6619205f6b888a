"""Sums of floats that a loop computes, in the order of `dpl/prims/sums.py`.

                               for each block of 1024 steps
    for i < n { ...; x }         for i in the block { ...; buffer[i] = x }
    s = sum x             =>     sums[b] = block buffer
                               s = tree sums

The steps of a block are independent, so LLVM vectorises them; a kernel adds up the block.

Sums of rows are added in place.  Where there are more rows than a block has, the rows of a block have a sum of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.node import node
from dpl.prims.sums import BLOCK, FEW

from dplc.flat import term as f
from dplc.machine.emit.bodies import arrays, interrupts
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.llvm.writer import Bordered, Mark, Values

APART = 8  # elements between buffers: their numbers of one step would else share a set of the first-level cache


def few(count: str) -> bool:
    """True if a count is known, and so small that numbers are added in order."""
    return count.isdigit() and int(count) < FEW


@node
class Steps:
    """The steps of a loop: `at` writes one, and gives the next numbers, then the next state.  `begin` comes before a
    strip of steps, and gets the first one and their number.  The marks are those of the loop, and of its accesses."""

    at: Callable[[str, Values], Values]
    begin: Callable[[str, str], None]
    mark: Mark
    access: str

    def mark_after(self, done: str) -> Mark:
        """The mark of a piece of the loop, after `done` steps."""
        return self.mark.after(done) if isinstance(self.mark, Bordered) else self.mark


class BlockSums:
    """The sums of `count` numbers of each of some types, while a loop computes them.  Their state in the loop is where
    the next number goes in the buffers, and how many blocks are complete."""

    TYPES = ("i64", "i64")
    START = ("0", "0")

    def __init__(self, e: BodyEmitter, types: Sequence[str], count: str) -> None:
        self.e, self.types, w = e, types, e.w
        self.stack = w.let("call ptr @llvm.stacksave.p0()")
        room = w.let(f"call i64 @llvm.umin.i64(i64 {count}, i64 {BLOCK})")
        padded = w.add(room, str(APART))
        self.buffers = [w.let(f"alloca {SCALARS[ty]}, i64 {padded}, align 64") for ty in types]
        self.blocks = w.let(f"udiv i64 {w.add(count, str(BLOCK - 1))}, {BLOCK}")
        self.sums = [self._room_for(ty, self.blocks) for ty in types]

    def _room_for(self, ty: str, blocks: str) -> tuple[str, str]:
        """Memory for the sums of blocks, with its owner: that of one is in the stack frame."""
        w, leaf = self.e.w, SCALARS[ty]
        one = w.let(f"alloca {leaf}, align 8")

        def several() -> Values:
            both = w.let(f"call {{ ptr, ptr }} @rt.array(i64 {w.scale(blocks, SIZES[leaf])}){self.e.place()}")
            return [w.let(f"extractvalue {{ ptr, ptr }} {both}, {i}") for i in (0, 1)]

        owner, data = w.choose(w.let(f"icmp ugt i64 {blocks}, 1"), ("ptr", "ptr"), several, lambda: ["null", one])
        return owner, data

    def run(self, length: str, steps: Steps, types: Sequence[str], inits: Values) -> Values:
        """for i < length, in strips that end where a block does.  The state is that of the sums, and then one of
        `types`."""
        w = self.e.w

        def strip(state: Values) -> Values:
            interrupts.poll(self.e)
            done, place, blocks, *others = state
            left = w.let(f"sub i64 {length}, {done}")
            count = w.let(f"call i64 @llvm.umin.i64(i64 {left}, i64 {w.let(f'sub nuw nsw i64 {BLOCK}, {place}')})")
            steps.begin(done, count)

            def put(i: str, others: Values) -> Values:
                after = steps.at(w.let(f"add nuw nsw i64 {done}, {i}"), others)
                return self._put(self.buffers, w.let(f"add nuw nsw i64 {place}, {i}"), after, steps.access)

            others = w.count_to(count, put, types, others, steps.mark_after(done))
            place = w.let(f"add nuw nsw i64 {place}, {count}")
            full = w.let(f"icmp eq i64 {place}, {BLOCK}")
            ends = w.choose(
                full, self.TYPES, lambda: ["0", self._end(self.buffers, place, blocks)], lambda: [place, blocks]
            )
            return [w.let(f"add nuw nsw i64 {done}, {count}"), *ends, *others]

        def unfinished(state: Values) -> str:
            return w.let(f"icmp ult i64 {state[0]}, {length}")

        return self.e.loop(("i64", *self.TYPES, *types), ["0", *inits], unfinished, strip)[1:]

    def block(self, block: str, length: str, steps: Steps) -> None:
        """The steps of one block of a loop of this length without other state, with buffers of its own."""
        w = self.e.w
        interrupts.poll(self.e)
        buffers = [w.slot(f"[{BLOCK + APART} x {SCALARS[ty]}]") for ty in self.types]
        first = w.let(f"mul nuw nsw i64 {block}, {BLOCK}")
        count = w.let(f"call i64 @llvm.umin.i64(i64 {w.let(f'sub i64 {length}, {first}')}, i64 {BLOCK})")
        steps.begin(first, count)

        def put(i: str, _: Values) -> Values:
            return self._put(buffers, i, steps.at(w.let(f"add nuw nsw i64 {first}, {i}"), []), steps.access)

        w.count_to(count, put, mark=steps.mark_after(first))
        self._end(buffers, count, block)

    def _put(self, buffers: Sequence[str], place: str, after: Values, access: str) -> Values:
        """Stores the numbers of a step, which come first in `after`; the rest of it."""
        w = self.e.w
        for ty, buffer, value in zip(self.types, buffers, after, strict=False):
            at = w.let(f"getelementptr inbounds {SCALARS[ty]}, ptr {buffer}, i64 {place}")
            w.store(SCALARS[ty], value, at, access)
        return after[len(buffers) :]

    def _end(self, buffers: Sequence[str], count: str, blocks: str) -> str:
        """Adds up a block of `count` numbers; how many blocks are complete then."""
        w = self.e.w
        for ty, buffer, (_, sums) in zip(self.types, buffers, self.sums, strict=True):
            total = w.let(f"call {SCALARS[ty]} @rt.block.{ty}(ptr {buffer}, i64 {count})")
            w.store(SCALARS[ty], total, w.let(f"getelementptr inbounds {SCALARS[ty]}, ptr {sums}, i64 {blocks}"))
        return w.add(blocks, "1")

    def totals(self, state: Values) -> Values:
        """The sums after all points: what is left in the buffers is added, then the sums of blocks by pairs."""
        w, (place, blocks) = self.e.w, state
        part = w.let(f"icmp ne i64 {place}, 0")
        (blocks,) = w.choose(part, ("i64",), lambda: [self._end(self.buffers, place, blocks)], lambda: [blocks])
        some = w.let(f"icmp ne i64 {blocks}, 0")
        leaves = [SCALARS[ty] for ty in self.types]

        def trees() -> Values:
            return [w.let(f"call {SCALARS[ty]} @rt.tree.{ty}(ptr {data}, i64 {blocks})")
                    for ty, (_, data) in zip(self.types, self.sums, strict=True)]  # fmt: skip

        totals = w.choose(some, leaves, trees, lambda: [number(0.0, ty) for ty in self.types])
        for owner, _ in self.sums:
            w.do(f"call void @rt.release(ptr {owner})")
        w.do(f"call void @llvm.stackrestore.p0(ptr {self.stack})")
        return totals


class RowSums:
    """The sum of `count` rows, while a loop adds them to `rows`, the sum of a block."""

    def __init__(self, e: BodyEmitter, elem: f.Type, dims: Sequence[str], count: str) -> None:
        self.e, w = e, e.w
        self.total = arrays.zero_array(e, elem, dims)
        self.several = w.let(f"icmp ugt i64 {count}, {BLOCK}")

        def block() -> Values:
            return arrays.zero_array(e, elem, dims).values[:2]

        owner, data = w.choose(self.several, ("ptr", "ptr"), block, lambda: ["null", self.total.data])
        self.rows = arrays.Array(elem, owner, data, tuple(dims))

    def start_row(self, row: str) -> None:
        """Adds the sum of a block to the whole sum, if row number `row` is the first one of the next block."""
        w = self.e.w
        if row != "0":
            first = w.let(f"icmp eq i64 {w.let(f'and i64 {row}, {BLOCK - 1}')}, 0")
            later = w.let(f"and i1 {first}, {w.let(f'icmp ne i64 {row}, 0')}")
            w.choose(later, (), self._end, lambda: [])

    def add(self, place: str, value: str, mark: str) -> None:
        """Adds a number to a row."""
        w, ty = self.e.w, self.rows.number
        leaf = SCALARS[ty.name]
        at = w.let(f"getelementptr inbounds {leaf}, ptr {self.rows.data}, i64 {place}")
        plus = "fadd" if f.is_float(ty) else "add"
        w.store(leaf, w.let(f"{plus} {leaf} {w.load(leaf, at, mark)}, {value}"), at, mark)

    def _end(self) -> Values:
        w, rows = self.e.w, self.rows
        count = w.product(rows.dims)
        arrays.add_into(self.e, rows.number, self.total.data, rows.data, count)
        w.do(f"call void @llvm.memset.p0.i64(ptr {rows.data}, i8 0, i64 {w.scale(count, rows.size)}, i1 false)")
        return []

    def result(self) -> arrays.Array:
        """The array of sums, with the last block added."""
        self.e.w.choose(self.several, (), self._end, lambda: [])
        self.e.w.do(f"call void @rt.release(ptr {self.rows.owner})")
        return self.total
