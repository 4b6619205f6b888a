"""Kernels that complete the sums of other kernels, for each type of numbers.

tree_T(sums, results, n, count)   the sums of n blocks of each of some numbers, added by pairs of neighbours
columns_T(sums, blocks, columns)  the sums of blocks of rows, added in order
blocks_T(sums, numbers, n)        the sums of blocks of n numbers
add_T(to, copies, groups, n)      the sum of copies of n numbers, added to `to`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpl.prims.sums import BLOCK, LANES

from dplc.flat import term as f
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.llvm.writer import Values, Writer
from dplc.narrow import expect_type
from dplc.passes.device.kernels import THREADS, Kernel

SECTOR = 32  # bytes of memory that are moved together


def needed(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """The kernels, by name and type, that complete the results of another one."""
    for made in kernel.outs:
        if made.out.kind in ("keep", "last") or made.own:
            continue
        ty = expect_type(f.Num, made.elem).name
        if made.out.kind == "add":
            yield "add", ty
        elif kernel.geometry == "rows":
            yield "columns", ty
        else:
            yield "tree", ty
            if kernel.geometry == "groups":
                yield "blocks", ty


class _Kernel:
    """A kernel under construction, for one type."""

    def __init__(self, name: str, ty: str, pointers: str, lengths: str) -> None:
        self.w, self.ty, self.leaf = Writer(), ty, SCALARS[ty]
        self.head = f"{name}_{ty}"
        self.params = [f"ptr addrspace(1) %{p}.g" for p in pointers.split()] + [f"i64 %{n}" for n in lengths.split()]
        self.casts = [f"  %{p} = addrspacecast ptr addrspace(1) %{p}.g to ptr\n" for p in pointers.split()]
        self.thread = self.w.let("call i64 @rt.thread()")
        self.step = self.w.let("call i64 @rt.threads()")

    def text(self) -> str:
        lines = "\n".join(self.w.lines)
        return (
            f'define ptx_kernel void @{self.head}({", ".join(self.params)}) "nvvm.maxntid"="{THREADS}" nounwind {{\n'
            f"entry:\n{''.join(self.casts)}  br label %start\nstart:\n{lines}\n  ret void\n}}\n"
        )

    def place(self, base: str, i: str) -> str:
        return self.w.let(f"getelementptr {self.leaf}, ptr {base}, i64 {i}")

    def load(self, base: str, i: str) -> str:
        return self.w.load(self.leaf, self.place(base, i))

    def plus(self, a: str, b: str) -> str:
        return self.w.let(f"{'fadd' if self.ty[0] == 'f' else 'add'} {self.leaf} {a}, {b}")

    def sum(self, first: str, count: str, step: str, place: Callable[[str], str], init: str) -> str:
        """init + the numbers at place i, for i = first, first + step ... below count."""
        w = self.w

        def more(state: Values) -> Values:
            value = w.load(self.leaf, place(state[0]))
            return [w.let(f"add i64 {state[0]}, {step}"), self.plus(state[1], value)]

        return w.loop(("i64", self.leaf), [first, init], lambda s: w.let(f"icmp slt i64 {s[0]}, {count}"), more)[1]

    def warp(self) -> tuple[str, str, str]:
        """The number of this thread's warp, its own in it, and the number of warps."""
        w = self.w
        return (
            w.let(f"lshr i64 {self.thread}, 5"), w.let(f"and i64 {self.thread}, {LANES - 1}"),
            w.let(f"lshr i64 {self.step}, 5"),
        )  # fmt: skip

    def store_first(self, lane: str, value: str, place: Callable[[], str]) -> None:
        def store() -> Values:
            self.w.store(self.leaf, value, place())
            return []

        self.w.choose(self.w.let(f"icmp eq i64 {lane}, 0"), (), store, list)


def tree(ty: str) -> str:
    """A block of threads for each number.  Sums of 2s blocks stand where the first of them was."""
    k = _Kernel("tree", ty, "sums results", "n count")
    w, bits = k.w, THREADS.bit_length() - 1
    own = w.let(f"and i64 {k.thread}, {THREADS - 1}")

    def one(number: str) -> None:
        sums = k.place("%sums", w.mul(number, "%n"))

        def level(state: Values) -> Values:
            (s,) = state
            two = w.let(f"shl i64 {s}, 1")
            beyond = w.let(f"add i64 %n, {w.let(f'sub i64 {s}, 1')}")  # n - s, rounded up to pairs
            pairs = w.let(f"udiv i64 {beyond}, {two}")

            def pair(i: str) -> None:
                left = w.let(f"mul i64 {i}, {two}")
                total = k.plus(k.load(sums, left), k.load(sums, w.add(left, s)))
                w.store(k.leaf, total, k.place(sums, left))

            w.strided(own, pairs, str(THREADS), pair)
            w.do("call void @llvm.nvvm.barrier0()")
            return [two]

        w.loop(("i64",), ["1"], lambda state: w.let(f"icmp slt i64 {state[0]}, %n"), level)
        k.store_first(own, k.load(sums, "0"), lambda: k.place("%results", number))

    w.strided(w.let(f"lshr i64 {k.thread}, {bits}"), "%count", w.let(f"lshr i64 {k.step}, {bits}"), one)
    return k.text()


def columns(ty: str) -> str:
    k = _Kernel("columns", ty, "sums", "blocks columns")
    w = k.w

    def column(c: str) -> None:
        total = k.sum("1", "%blocks", "1", lambda b: k.place("%sums", w.add(w.mul(b, "%columns"), c)),
                      k.load("%sums", c))  # fmt: skip
        w.store(k.leaf, total, k.place("%sums", c))

    w.strided(k.thread, "%columns", k.step, column)
    return k.text()


def blocks(ty: str) -> str:
    k = _Kernel("blocks", ty, "sums numbers", "n")
    w = k.w
    warp, lane, warps = k.warp()
    count = w.let(f"udiv i64 {w.add('%n', str(BLOCK - 1))}, {BLOCK}")

    def block(b: str) -> None:
        start = w.let(f"mul i64 {b}, {BLOCK}")
        size = w.let(f"call i64 @llvm.smin.i64(i64 {w.let(f'sub i64 %n, {start}')}, i64 {BLOCK})")
        value = k.sum(lane, size, str(LANES), lambda i: k.place("%numbers", w.add(start, i)), number(0, ty))
        total = w.let(f"call {k.leaf} @rt.warp.{ty}({k.leaf} {value}, i64 {size})")
        k.store_first(lane, total, lambda: k.place("%sums", b))

    w.strided(warp, count, warps, block)
    return k.text()


def add(ty: str) -> str:
    """A warp adds up the copies of numbers that lie in a sector of memory, which its threads read together: each has
    some of the lanes of one number."""
    k = _Kernel("add", ty, "to copies", "groups n")
    w, beside = k.w, SECTOR // SIZES[k.leaf]
    apart = LANES // beside  # threads of a number; lane c of thread c, and each that is so many further on
    warp, lane, warps = k.warp()
    own, first = w.let(f"and i64 {lane}, {beside - 1}"), w.let(f"udiv i64 {lane}, {beside}")

    def numbers(s: str) -> None:
        i = w.add(w.mul(s, str(beside)), own)
        at = w.let(f"call i64 @llvm.smin.i64(i64 {i}, i64 {w.let('sub i64 %n, 1')})")  # shuffles need all threads

        def copy(g: str) -> str:
            return k.place("%copies", w.add(w.mul(g, "%n"), at))

        lanes = [k.sum(w.add(first, str(apart * j)), "%groups", str(LANES), copy, number(0, ty)) for j in range(beside)]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [k.plus(a, b) for a, b in zip(lanes[:half], lanes[half:], strict=True)]
        (total,), step = lanes, LANES // 2
        while step >= beside:
            other = w.let(f"call {k.leaf} @rt.across.{ty}({k.leaf} {total}, i32 {step})")
            total, step = k.plus(total, other), step // 2
        before = k.load("%to", at)
        inside = w.let(f"icmp slt i64 {i}, %n")
        wanted = w.let(f"select i1 {inside}, i64 {first}, i64 1")
        k.store_first(wanted, k.plus(before, total), lambda: k.place("%to", i))

    w.strided(warp, w.let(f"udiv i64 {w.add('%n', str(beside - 1))}, {beside}"), warps, numbers)
    return k.text()


KERNELS = {"tree": tree, "columns": columns, "blocks": blocks, "add": add}
