"""A Par -> a kernel: LLVM text of the function that a GPU's threads start with.

    par i < n to keep { ...; yield x }         define ptx_kernel void @par_3f2a(arguments, i64 %n0, ptr %o0) {
                                                 for i from this thread's number, in steps of all threads {
                                        =>         ...; o0[i] = x } }

The arguments are the leaves of what the points use, without owners: everything from outside is lent.  Then come the
counts of the dimensions, and for each result its address, with the lengths that only the host knows.  What the threads
do is decided by the kernel's geometry (`passes/device/kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.flat.ops.row import Dim
from dplc.machine.cuda.device import DeviceFunction
from dplc.machine.cuda.sums import SharedSums
from dplc.machine.emit import arrays, inplace
from dplc.machine.emit.layout import HEADER, leaves, struct
from dplc.machine.emit.rows import as_array, in_pieces
from dplc.machine.emit.unit import Unit
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS, memory_type
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure
from dplc.narrow import expect_type
from dplc.passes.device.kernels import THREADS, Kernel, Made

ENTRY = ""  # the name of the function that threads start with, in its emitter


class KernelEmitter(DeviceFunction):
    """The entry of a kernel under construction."""

    def __init__(self, unit: Unit, kernel: Kernel) -> None:
        leaf = (*kernel.levels, *kernel.loops)[-1].par
        super().__init__(unit, f.Fn(ENTRY, kernel.args, (), leaf.body, "", leaf.span))
        self.kernel = kernel
        self.leaf = leaf
        self.params: list[str] = []
        self.binds, self.pieces = in_pieces(leaf)
        self.outs = kernel.outs
        self.variables = ""  # in shared memory
        self.header = ""  # of the arrays that points add to: one owner
        self.moving: list[tuple[str, Made]] = []  # of these, those that might be others after a point

    def text(self) -> str:
        """The kernel's text; its name is @NAME."""
        self.arguments()
        self.first, self.step = self.w.let("call i64 @rt.thread()"), self.w.let("call i64 @rt.threads()")
        if any(made.out.kind == "add" for made in self.outs):
            self.header = self.w.slot(f"[{HEADER} x i8]")
        mine = [(k, made) for k, made in enumerate(self.outs) if made.own]
        steady = self.steady(mine) if mine else set[int]()
        self.moving = [(self.places[k], made) for i, (k, made) in enumerate(mine) if i not in steady]
        if self.kernel.recursive:
            self.w.do(f"call void @rt.begin_thread(ptr {self.w.slot('i64')})")
        {"points": self.points, "sums": self.blocks, "rows": self.columns, "groups": self.groups_}[
            self.kernel.geometry
        ]()
        body = "\n".join((*self.w.slots, "  br label %start", "start:", *self.w.lines))
        head = f'define ptx_kernel void @NAME({", ".join(self.params)}) "nvvm.maxntid"="{THREADS}" nounwind'
        return f"{self.variables}{head} {{\nentry:\n{body}\n  ret void\n}}\n"

    # ---- parameters

    def arguments(self) -> None:
        targets = {made.out.target for made in self.outs if made.out.target is not None}
        for i, var in enumerate(self.kernel.args):
            self.env[var.name] = self.argument(f"%a{i}", var.ty, var in targets)
        self.counts = [self.length(atom, f"%n{i}") for i, atom in enumerate(self.kernel.space)]
        self.places: list[str] = []
        self.sizes: list[list[str]] = []
        for i, made in enumerate(self.outs):
            self.places.append(self.pointer(f"%o{i}", "noalias" if made.out.target is None else ""))
            dims = made.row if made.out.kind == "keep" else made.dims
            self.sizes.append([self.length(dim, f"%o{i}.{k}") for k, dim in enumerate(dims)])
        if self.kernel.geometry == "groups":
            self.params.append("i64 %groups")

    def argument(self, name: str, ty: f.Type, changes: bool) -> Values:
        """The leaves of a variable from outside."""
        if isinstance(ty, f.Tup):
            parts = [self.argument(f"{name}.{i}", item, changes) for i, item in enumerate(ty.items)]
            return [leaf for part in parts for leaf in part]
        if isinstance(ty, f.Arr):
            data = self.pointer(f"{name}.d", "" if changes else "noalias readonly")
            dims = [f"{name}.{k}" for k in range(ty.rank)]
            self.params += [f"i64 {dim}" for dim in dims]
            return ["null", data, *dims]
        if isinstance(ty, f.Data):
            return [self.pointer(name, "")]
        (leaf,) = leaves(ty)
        self.params.append(f"{memory_type(leaf)} {name}")
        return [self.w.let(f"trunc i8 {name} to i1") if leaf == "i1" else name]

    def pointer(self, name: str, how: str) -> str:
        self.params.append(" ".join(filter(None, ("ptr addrspace(1)", how, name))))
        return self.w.let(f"addrspacecast ptr addrspace(1) {name} to ptr")

    def length(self, dim: Dim, name: str) -> str:
        """A length that the host knows; constants are known here, too."""
        if isinstance(dim, f.Const):
            return str(dim.value)
        self.params.append(f"i64 {name}")
        return name

    # ---- points

    def total(self) -> str:
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
            self.define((dimensions[i],), [here])

    def compute(self, point: str) -> None:
        """A point, with what it keeps; its loops write their parts."""
        self.indices(point)
        self.w.do("call void @rt.begin_point()")
        self.own_accumulators()
        for level in self.kernel.levels[:-1]:
            self.run(level.before)
        if self.kernel.loops:
            self.run(self.kernel.levels[-1].before)
            self.inner(0, point, 0)
        else:
            self.run(self.binds)
            self.keep(point)
            for place, made in self.moving:
                self.require_same(place, self.value(made.value)[1])

    def own_accumulators(self) -> None:
        """Defines the arrays to which each point adds at places of its own."""
        for k, made in enumerate(self.outs):
            if made.own and made.out.acc is not None:
                self.w.store("i64", "1", self.header)
                self.define((made.out.acc,), [self.header, self.places[k], *self.sizes[k]])

    def steady(self, adds: Sequence[tuple[int, Made]]) -> set[int]:
        """Which of the arrays that points add to, by number, are the same after a point, and need no checks."""
        own = {index.name for level in self.kernel.levels for index, _ in level.par.space}
        accs = [(made.out.acc, made.value) for _, made in adds if made.out.acc is not None]
        chains = [chain for chain in inplace.chains_in(self.leaf.body, accs, own) if chain.certain]
        for chain in chains:
            self.ready.update(chain.variables)
        return {chain.index for chain in chains}

    def inner(self, number_: int, point: str, depth: int) -> None:
        """The loops over the dimensions of the inner Pars; `point` numbers those of the outer ones."""
        level = self.kernel.loops[number_]
        last = number_ + 1 == len(self.kernel.loops)
        lengths = [self.rows_of(depth + k) for k in range(len(level.par.space))]

        def over(k: int, point: str) -> None:
            def step(i: str) -> None:
                self.define((level.par.space[k][0],), [i])
                here = self.w.add(self.w.mul(point, lengths[k]), i)
                if k + 1 < len(lengths):
                    over(k + 1, here)
                elif last:
                    self.run(self.binds)
                    self.keep(here)
                else:
                    self.run(level.before)
                    self.inner(number_ + 1, here, depth + len(lengths))

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
                place = w.element(self.places[k], self.one(made.value), struct(made.elem).size)
                w.do(f"atomicrmw max ptr {place}, i64 {w.add(point, '1')} monotonic")
            if made.out.kind != "keep":
                continue
            dims, size = self.sizes[k][inside:], struct(made.elem).size
            if k in self.pieces:
                items = self.pieces[k].items
                start = w.element(self.places[k], point, size * len(items))
                for i, atom in enumerate(items):
                    self.put(made.elem, self.value(atom), w.at(start, i * size))
                continue
            row = as_array(made.value, self.value(made.value))
            start = w.at(self.places[k], w.mul(point, w.scale(w.product(dims), size)))
            if isinstance(made.value.ty, f.Arr):
                arrays.check_shape(self, dims, row.dims, 0, Failure.SHAPE)
                w.copy(start, row.data, w.scale(w.product(row.dims), size))
            else:
                self.put(made.elem, self.value(made.value), start)

    def every(self, body: Callable[[str], object], count: str, first: str, step: str) -> None:
        """for i = first; i < count; i += step"""
        w = self.w

        def below(state: Values) -> str:
            return w.let(f"icmp slt i64 {state[0]}, {count}")

        def run(state: Values) -> Values:
            body(state[0])
            return [w.let(f"add nsw i64 {state[0]}, {step}")]

        w.loop(("i64",), [first], below, run)

    def points(self) -> None:
        self.every(self.compute, self.total(), self.first, self.step)

    # ---- sums

    def folds(self) -> list[tuple[int, Made]]:
        return [(k, made) for k, made in enumerate(self.outs) if made.out.kind == "fold"]

    def add(self, ty: f.Type, a: str, b: str) -> str:
        name = expect_type(f.Num, ty).name
        return self.w.let(f"{'fadd' if f.is_float(ty) else 'add'} {SCALARS[name]} {a}, {b}")

    def zeros_of(self, folds: Sequence[tuple[int, Made]]) -> Values:
        return [number(0, expect_type(f.Num, made.elem).name) for _, made in folds]

    def blocks(self) -> None:
        """Blocks of threads do blocks of points."""
        folds = [(expect_type(f.Num, made.elem), self.places[k], made.value) for k, made in self.folds()]
        sums = SharedSums(self, [(ty, place) for ty, place, _ in folds])
        self.variables = sums.variables()

        def point(number_: str) -> Values:
            self.compute(number_)
            return [self.one(value) for _, _, value in folds]

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
                return [self.add(made.elem, old, self.one(made.value))
                        for (_, made), old in zip(folds, state, strict=True)]  # fmt: skip

            sums = w.count_to(last, step, types, self.zeros_of(folds), first=first)
            for (k, made), value in zip(folds, sums, strict=True):
                self.put(made.elem, [value], w.element(self.places[k], place, struct(made.elem).size))

        self.every(column, w.mul(blocks, columns), self.first, self.step)

    # ---- additions

    def groups_(self) -> None:
        """Threads do groups of consecutive points, and add to copies of their own."""
        w, total = self.w, self.total()
        adds = [(k, made) for k, made in enumerate(self.outs) if made.out.kind == "add" and not made.own]
        accs = [(made.out.acc, made.value) for _, made in adds if made.out.acc is not None]
        steady = self.steady(adds)
        types = [leaf for _, made in adds for leaf in leaves(made.value.ty)]
        def group(g: str) -> None:
            w.store("i64", "1", self.header)
            inits = [leaf for k, made in adds for leaf in self.copy(k, made, g)]
            first = w.let(f"udiv i64 {w.mul(g, total)}, %groups")
            last = w.let(f"udiv i64 {w.mul(w.add(g, '1'), total)}, %groups")

            def step(i: str, state: Values) -> Values:
                self.define(tuple([acc for acc, _ in accs]), state)
                self.compute(i)
                for k, made in self.folds():
                    place = w.element(self.places[k], i, struct(made.elem).size)
                    self.put(made.elem, self.value(made.value), place)
                return [leaf for _, value in accs for leaf in self.value(value)]

            ends = w.count_to(last, step, types, inits, first=first)
            at = 0
            for i, (_, made) in enumerate(adds):
                if i not in steady:
                    self.require_same(inits[at + 1], ends[at + 1])
                at += len(leaves(made.value.ty))

        self.every(group, "%groups", self.first, self.step)

    def copy(self, k: int, made: Made, group: str) -> Values:
        """The copy of a target that a group adds to; only this group knows it."""
        w, dims = self.w, self.sizes[k]
        size = w.scale(w.product(dims), struct(made.elem).size)
        return [self.header, w.at(self.places[k], w.mul(group, size)), *dims]

    def require_same(self, before: str, after: str) -> None:
        """Fails if the points made another array; the host does them then."""
        self.require(self.w.let(f"icmp eq ptr {before}, {after}"), Failure.NONE, 0)
