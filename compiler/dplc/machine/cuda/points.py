"""The points of a Par, done by threads of a GPU: what each of them computes, keeps and adds, in the way that the
kernel's geometry says (`passes/device/kernels.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node
from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.machine.cuda.device import DeviceFunction
from dplc.machine.cuda.sums import SharedSums
from dplc.machine.emit.bodies import arrays, inplace
from dplc.machine.emit.module.layout import ARRAY_HEADER, leaves, struct
from dplc.machine.emit.points.rows import addresses, as_array, in_pieces
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure
from dplc.narrow import expect_type
from dplc.passes.device.kernels import Kernel, Made


@node
class Places:
    """Where results go: the counts of the dimensions of a space; for each result its address, and the lengths of a row
    or of the array that is added to; the number of groups of points."""

    counts: list[str]
    places: list[str]
    sizes: list[list[str]]
    groups: str = ""


class Points:
    """The points of a kernel, in the function `e`.  Threads begin with number `first`, and there are `step` of them."""

    def __init__(self, e: DeviceFunction, kernel: Kernel, where: Places, first: str, step: str) -> None:
        self.e, self.w, self.kernel = e, e.w, kernel
        self.counts, self.places, self.sizes, self.groups = where.counts, where.places, where.sizes, where.groups
        self.first, self.step = first, step
        self.leaf = (*kernel.levels, *kernel.loops)[-1].par
        self.binds, self.pieces = in_pieces(self.leaf)
        self.outs = kernel.outs
        self.variables = ""  # in shared memory
        adds = any(made.out.kind == "add" for made in self.outs)
        self.header = self.w.slot(f"[{ARRAY_HEADER} x i8]") if adds else ""  # of arrays that points add to: one owner
        mine = [(k, made) for k, made in enumerate(self.outs) if made.own]
        steady = self.steady(mine) if mine else set[int]()
        self.moving = [(self.places[k], made) for i, (k, made) in enumerate(mine) if i not in steady]

    def write(self) -> None:
        """Writes the loops of a thread."""
        {"points": self.each, "sums": self.blocks, "rows": self.columns, "groups": self.grouped}[self.kernel.geometry]()

    def by_team(self) -> None:
        """The same for the threads of a team: numbers that are summed are stored, one for each point."""
        {"points": self.each, "sums": self.numbers, "rows": self.columns, "groups": self.grouped}[
            self.kernel.geometry
        ]()

    # ---- points

    def total(self) -> str:
        """The number of points."""
        return self.w.product(self.counts)

    def indices(self, point: str) -> None:
        """Defines the indices of a point, by its number."""
        w, rest = self.w, point
        dimensions = [index for level in self.kernel.levels for index, _ in level.par.space]
        for i in reversed(range(len(dimensions))):
            here = rest
            if i:
                here = w.let(f"urem i64 {rest}, {self.counts[i]}")
                rest = w.let(f"udiv i64 {rest}, {self.counts[i]}")
            self.e.define((dimensions[i],), [here])

    def compute(self, point: str) -> None:
        """A point, with what it keeps; its loops write their parts."""
        self.indices(point)
        self.e.begin_point()
        self.own_accumulators()
        for level in self.kernel.levels[:-1]:
            self.e.run(level.before)
        if self.kernel.loops:
            self.e.run(self.kernel.levels[-1].before)
            self.inner(0, point, 0)
            self.e.run(self.kernel.levels[-1].after)
        else:
            self.e.run(self.binds)
            self.keep(point)
            for place, made in self.moving:
                self.require_same(place, self.e.value(made.value)[1])
        for level in reversed(self.kernel.levels[:-1]):
            self.e.run(level.after)

    def own_accumulators(self) -> None:
        """Defines the arrays to which each point adds at places of its own."""
        for k, made in enumerate(self.outs):
            if made.own and made.out.acc is not None:
                self.w.store("i64", "1", self.header)
                self.e.define((made.out.acc,), [self.header, self.places[k], *self.sizes[k]])

    def steady(self, adds: Sequence[tuple[int, Made]]) -> set[int]:
        """Which of the arrays that points add to, by number, are the same after a point, and need no checks."""
        own = {index.name for level in self.kernel.levels for index, _ in level.par.space}
        accs = [(made.out.acc, made.value) for _, made in adds if made.out.acc is not None]
        chains = [chain for chain in inplace.chains_in(self.leaf.body, accs, own) if chain.certain]
        for chain in chains:
            self.e.ready.update(chain.variables)
        return {chain.index for chain in chains}

    def inner(self, number_: int, point: str, depth: int) -> None:
        """The loops over the dimensions of the inner Pars; `point` numbers those of the outer ones."""
        level = self.kernel.loops[number_]
        last = number_ + 1 == len(self.kernel.loops)
        lengths = [self.rows_of(depth + k) for k in range(len(level.par.space))]

        def over(k: int, point: str) -> None:
            def step(i: str) -> None:
                self.e.define((level.par.space[k][0],), [i])
                here = self.w.add(self.w.mul(point, lengths[k]), i)
                if k + 1 < len(lengths):
                    over(k + 1, here)
                elif last:
                    self.e.run(self.binds)
                    self.keep(here)
                else:
                    self.e.run(level.before)
                    self.inner(number_ + 1, here, depth + len(lengths))
                    self.e.run(level.after)

            self.w.repeat(lengths[k], step)

        over(0, point)

    def rows_of(self, k: int) -> str:
        """A length of the inner dimensions, which are the same for all results."""
        return self.sizes[0][k]

    def keep(self, point: str) -> None:
        """Stores the values of a point that are kept."""
        w, inside = self.w, sum(len(level.par.space) for level in self.kernel.loops)
        for k, made in enumerate(self.outs):
            if made.out.kind == "last":
                place = w.element(self.places[k], self.e.one(made.value), struct(made.elem).size)
                w.do(f"atomicrmw max ptr {place}, i64 {w.add(point, '1')} monotonic")
            if made.out.kind != "keep":
                continue
            dims, size = self.sizes[k][inside:], struct(made.elem).size
            if k in self.pieces:
                space = [index for level in self.kernel.levels for index, _ in level.par.space]
                row = self.pieces[k]
                places = addresses(self.e, made.out, row, self.places[k], point, space, self.counts)
                for at, atom in zip(places, row.items, strict=True):
                    self.e.put(made.elem, self.e.value(atom), at)
                continue
            row = as_array(made.value, self.e.value(made.value))
            start = w.at(self.places[k], w.mul(point, w.scale(w.product(dims), size)))
            if isinstance(made.value.ty, f.Arr):
                arrays.check_shape(self.e, dims, row.dims, 0, Failure.SHAPE)
                w.copy(start, row.data, w.scale(w.product(row.dims), size))
            else:
                self.e.put(made.elem, self.e.value(made.value), start)

    def each(self) -> None:
        """Does the points of this thread."""
        self.w.strided(self.first, self.total(), self.step, self.compute)

    # ---- sums

    def folds(self) -> list[tuple[int, Made]]:
        return [(k, made) for k, made in enumerate(self.outs) if made.out.kind == "fold"]

    def add(self, ty: f.Type, a: str, b: str) -> str:
        """The sum of two numbers."""
        name = expect_type(f.Num, ty).name
        return self.w.let(f"{'fadd' if f.is_float(ty) else 'add'} {SCALARS[name]} {a}, {b}")

    def zeros_of(self, folds: Sequence[tuple[int, Made]]) -> Values:
        return [number(0, expect_type(f.Num, made.elem).name) for _, made in folds]

    def number(self, point: str) -> None:
        """A point, and stores its numbers that are to be summed."""
        self.compute(point)
        for k, made in self.folds():
            place = self.w.element(self.places[k], point, struct(made.elem).size)
            self.e.put(made.elem, self.e.value(made.value), place)

    def numbers(self) -> None:
        self.w.strided(self.first, self.total(), self.step, self.number)

    def blocks(self) -> None:
        """Blocks of threads do blocks of points."""
        folds = [(expect_type(f.Num, made.elem), self.places[k], made.value) for k, made in self.folds()]
        sums = SharedSums(self.e, [(ty, place) for ty, place, _ in folds])
        self.variables = sums.variables()

        def point(number_: str) -> Values:
            self.compute(number_)
            return [self.e.one(value) for _, _, value in folds]

        sums.write(self.total(), point)

    def columns(self) -> None:
        """Threads do columns of blocks of rows."""
        w, folds = self.w, self.folds()
        cut = len(self.counts) - folds[0][1].out.rank
        rows, columns = w.product(self.counts[:cut]), w.product(self.counts[cut:])
        blocks = w.let(f"udiv i64 {w.add(rows, str(BLOCK - 1))}, {BLOCK}")
        types = [leaf for _, made in folds for leaf in leaves(made.elem)]

        def column(place: str) -> None:
            block, c = w.let(f"udiv i64 {place}, {columns}"), w.let(f"urem i64 {place}, {columns}")
            first = w.let(f"mul nuw nsw i64 {block}, {BLOCK}")
            last = w.let(f"call i64 @llvm.smin.i64(i64 {rows}, i64 {w.add(first, str(BLOCK))})")

            def step(row: str, state: Values) -> Values:
                self.compute(w.add(w.mul(row, columns), c))
                return [self.add(made.elem, old, self.e.one(made.value))
                        for (_, made), old in zip(folds, state, strict=True)]  # fmt: skip

            sums = w.count_to(last, step, types, self.zeros_of(folds), first=first)
            for (k, made), value in zip(folds, sums, strict=True):
                self.e.put(made.elem, [value], w.element(self.places[k], place, struct(made.elem).size))

        w.strided(self.first, w.mul(blocks, columns), self.step, column)

    # ---- additions

    def grouped(self) -> None:
        """Threads do groups of consecutive points, and add to copies of their own."""
        w, total = self.w, self.total()
        adds = [(k, made) for k, made in enumerate(self.outs) if made.out.kind == "add" and not made.own]
        accs = [(made.out.acc, made.value) for _, made in adds if made.out.acc is not None]
        steady = self.steady(adds)
        types = [leaf for _, made in adds for leaf in leaves(made.value.ty)]

        def group(g: str) -> None:
            w.store("i64", "1", self.header)
            inits = [leaf for k, made in adds for leaf in self.copy(k, made, g)]
            first = w.let(f"udiv i64 {w.mul(g, total)}, {self.groups}")
            last = w.let(f"udiv i64 {w.mul(w.add(g, '1'), total)}, {self.groups}")

            def step(i: str, state: Values) -> Values:
                self.e.define(tuple([acc for acc, _ in accs]), state)
                self.number(i)
                return [leaf for _, value in accs for leaf in self.e.value(value)]

            ends = w.count_to(last, step, types, inits, first=first)
            at = 0
            for i, (_, made) in enumerate(adds):
                if i not in steady:
                    self.require_same(inits[at + 1], ends[at + 1])
                at += len(leaves(made.value.ty))

        self.w.strided(self.first, self.groups, self.step, group)

    def copy(self, k: int, made: Made, group: str) -> Values:
        """The copy of a target that a group adds to; only this group knows it."""
        w, dims = self.w, self.sizes[k]
        size = w.scale(w.product(dims), struct(made.elem).size)
        return [self.header, w.at(self.places[k], w.mul(group, size)), *dims]

    def require_same(self, before: str, after: str) -> None:
        """Fails if the points made another array; the host does them then."""
        self.e.require(self.w.let(f"icmp eq ptr {before}, {after}"), Failure.NONE, 0)
