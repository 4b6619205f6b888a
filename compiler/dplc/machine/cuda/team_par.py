"""A Par in the steps of a team: its points are shared among the threads (`team.py`).

What points keep is written to the array at once.  Numbers that are summed are stored first, and each thread then has
their sum.  Where points add to one array, at any places, each thread does some consecutive ones, which add to a copy of
its own; few points are done by one thread, in order.
"""

from __future__ import annotations

from dpl.prims.sums import BLOCK
from dpl.source import NOWHERE

from dplc.flat import term as f
from dplc.machine.cuda.points import Places, Points
from dplc.machine.cuda.team import Team
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.module.layout import leaves, struct
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type
from dplc.passes.device.kernels import Kernel, Made

LEAST_OF_A_GROUP = 16  # points that add to a copy
COPIES = 1 << 16  # elements that the copies of all targets may have


class TeamPar:
    """A Par under construction; `counts` are those of its dimensions."""

    def __init__(self, e: Team, kernel: Kernel, variables: tuple[f.Var, ...]) -> None:
        self.e, self.w, self.kernel, self.vars = e, e.w, kernel, variables
        sites = [(level.par, None if level.par.span == NOWHERE else 0) for level in kernel.levels]
        given = [(e.one(atom), site) for par, site in sites for _, atom in par.space]
        self.counts = arrays.checked_counts(e, given)
        self.total = e.w.product(self.counts)
        rank = max((made.out.rank for made in kernel.outs if made.out.kind == "fold"), default=0)
        cut = len(self.counts) - rank
        self.columns = e.w.product(self.counts[cut:])
        self.blocks = e.w.let(f"udiv i64 {e.w.add(e.w.product(self.counts[:cut]), str(BLOCK - 1))}, {BLOCK}")

    def write(self) -> Values:
        """The results."""
        e = self.e
        sizes = [[self.e.length_of(dim) for dim in (made.row if made.out.kind == "keep" else made.dims)]
                 for made in self.kernel.outs]  # fmt: skip
        made = [self.place(one, size) for one, size in zip(self.kernel.outs, sizes, strict=True)]
        adds = [k for k, one in enumerate(self.kernel.outs) if one.out.kind == "add" and not one.own]
        groups = self.groups([made[k] for k in adds]) if adds else "1"
        copies = {k: self.copies(made[k], groups) for k in adds}
        where = Places(self.counts, [copies.get(k, array).data for k, array in enumerate(made)], sizes, groups)
        e.together(lambda: Points(e, self.kernel, where, e.thread, e.threads).by_team())
        for k, copy in copies.items():
            self.add_copies(made[k], copy, groups)
        told = ["true"] if len(self.vars) > len(made) else []  # that a device has done it
        return told + [leaf for one, array in zip(self.kernel.outs, made, strict=True)
                       for leaf in self.result(one, array)]  # fmt: skip

    def place(self, made: Made, size: list[str]) -> Array:
        """The array that a result of points goes to."""
        e, target = self.e, made.out.target
        match made.out.kind:
            case "keep":
                dims = [*self.counts, *size]
                return self.over(target, dims) if target else arrays.new_checked(e, made.elem, made.out.ordered(dims))
            case "add":
                assert target is not None
                return self.added_to(target, size)
            case _ if made.out.rank:
                most = self.w.let(f"call i64 @llvm.umax.i64(i64 {self.blocks}, i64 1)")
                return arrays.new_checked(e, made.elem, [most, self.columns])
            case _:
                return arrays.new_checked(e, made.elem, [self.total])

    def over(self, target: f.Atom, dims: list[str]) -> Array:
        """The target if it is unique, which may be written, or a new array."""
        e = self.e
        old = arrays.array_of(target.ty, e.value(target))

        def new() -> Values:
            fresh = arrays.new_checked(e, old.elem, dims)
            e.drop(old.type, old.values)
            return fresh.values[:2]

        owner, data = self.w.choose(e.unique(old.owner), ("ptr", "ptr"), lambda: [old.owner, old.data], new)
        return Array(old.elem, owner, data, tuple(dims))

    def added_to(self, target: f.Atom, dims: list[str]) -> Array:
        """What points add to: unique, and zeros in place of null, if there are points."""
        e = self.e
        old = arrays.array_of(target.ty, e.value(target))

        def ready() -> Values:
            return list(arrays.writable(e, arrays.present(e, old, dims)).values)

        some = self.w.let(f"icmp sgt i64 {self.total}, 0")
        return arrays.array_of(target.ty, self.w.choose(some, leaves(target.ty), ready, lambda: old.values))

    # ---- additions

    def groups(self, targets: list[Array]) -> str:
        """The number of groups of points; with one, they add to the targets themselves."""
        w, size = self.w, "0"
        for array in targets:
            size = w.add(size, w.product(array.dims))
        room = w.let(f"udiv i64 {COPIES}, {w.let(f'call i64 @llvm.umax.i64(i64 {size}, i64 1)')}")
        enough = w.let(f"udiv i64 {self.total}, {LEAST_OF_A_GROUP}")
        most = w.let(f"call i64 @llvm.umin.i64(i64 {room}, i64 {self.e.threads})")
        most = w.let(f"call i64 @llvm.umin.i64(i64 {most}, i64 {enough})")
        return w.let(f"call i64 @llvm.umax.i64(i64 {most}, i64 1)")

    def copies(self, target: Array, groups: str) -> Array:
        """What groups add to: zeros for each; or the target, without an owner, if there is one group."""

        def zeros() -> Values:
            return list(arrays.zero_array(self.e, target.elem, [groups, *target.dims]).values[:2])

        several = self.w.let(f"icmp ugt i64 {groups}, 1")
        owner, data = self.w.choose(several, ("ptr", "ptr"), zeros, lambda: ["null", target.data])
        return Array(target.elem, owner, data, (groups, *target.dims))

    def add_copies(self, target: Array, copies: Array, groups: str) -> None:
        """Adds the copies, if there are any, in order."""
        e, w, (leaf,), size = self.e, self.w, leaves(target.elem), self.w.product(target.dims)
        plus = "fadd" if f.is_float(target.elem) else "add"

        def element(i: str) -> None:
            def more(g: str, state: Values) -> Values:
                copy = w.load(leaf, w.element(copies.data, w.add(w.mul(g, size), i), target.size))
                return [w.let(f"{plus} {leaf} {state[0]}, {copy}")]

            first = w.load(leaf, w.element(copies.data, i, target.size))
            total = w.count_to(groups, more, (leaf,), [first], first="1")[0]
            place = w.element(target.data, i, target.size)
            w.store(leaf, w.let(f"{plus} {leaf} {w.load(leaf, place)}, {total}"), place)

        def add() -> Values:
            e.each(target.elem, size, element)
            e.drop(copies.type, copies.values)
            return []

        w.choose(w.let(f"icmp ne ptr {copies.owner}, null"), (), add, list)

    # ---- sums

    def result(self, made: Made, array: Array) -> Values:
        if made.out.kind != "fold":
            return list(array.values)
        return self.sums(made, array) if made.out.rank else self.sum(made, array)

    def sum(self, made: Made, numbers: Array) -> Values:
        """The sum of the numbers that points have stored."""
        e, name = self.e, numbers.number.name
        total = self.w.let(f"call {SCALARS[name]} @rt.team_sum.{name}(ptr {numbers.data}, i64 {self.total})")
        e.drop(numbers.type, numbers.values)
        if not made.out.kept:
            return [total]
        one = arrays.new_array(e, made.elem, ["1"])
        e.once(made.elem, lambda: e.put(made.elem, [total], one.data))
        return list(one.values)

    def sums(self, made: Made, partial: Array) -> Values:
        """The sums of rows: those of blocks of rows are added in order, in the place of the first block."""
        e, w, (leaf,) = self.e, self.w, leaves(made.elem)
        plus = "fadd" if f.is_float(expect_type(f.Num, made.elem)) else "add"
        size, zero = struct(made.elem).size, "0.0" if plus == "fadd" else "0"

        def column(c: str) -> None:
            def more(b: str, state: Values) -> Values:
                value = w.load(leaf, w.element(partial.data, w.add(w.mul(b, self.columns), c), size))
                return [w.let(f"{plus} {leaf} {state[0]}, {value}")]

            first = w.load(leaf, w.element(partial.data, c, size))
            total = w.count_to(self.blocks, more, (leaf,), [first], first="1")[0]
            none = w.let(f"icmp eq i64 {self.blocks}, 0")
            w.store(leaf, w.let(f"select i1 {none}, {leaf} {zero}, {leaf} {total}"), w.element(partial.data, c, size))

        e.each(made.elem, self.columns, column)
        cut = len(self.counts) - made.out.rank
        return [partial.owner, partial.data, *self.counts[cut:]]
