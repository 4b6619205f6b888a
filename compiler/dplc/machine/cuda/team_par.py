"""A Par in the steps of a team: its points are shared among the threads (`team.py`).

What points keep is written to the array at once.  Numbers that are summed are stored first, and each thread then has
their sum.  Where points add to one array, at any places, the first thread does them all, in order.
"""

from __future__ import annotations

from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.flat.ops.row import Dim
from dplc.machine.cuda.points import Places, Points
from dplc.machine.cuda.team import Team
from dplc.machine.emit import arrays
from dplc.machine.emit.arrays import Array
from dplc.machine.emit.layout import leaves, struct
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type
from dplc.passes.device.kernels import Kernel, Made


class TeamPar:
    """A Par under construction; `counts` are those of its dimensions."""

    def __init__(self, e: Team, kernel: Kernel, variables: tuple[f.Var, ...]) -> None:
        self.e, self.w, self.kernel, self.vars = e, e.w, kernel, variables
        given = [(e.one(atom), 0) for level in kernel.levels for _, atom in level.par.space]
        self.counts = arrays.checked_counts(e, given)
        self.total = e.w.product(self.counts)
        rank = max((made.out.rank for made in kernel.outs if made.out.kind == "fold"), default=0)
        cut = len(self.counts) - rank
        self.columns = e.w.product(self.counts[cut:])
        self.blocks = e.w.let(f"udiv i64 {e.w.add(e.w.product(self.counts[:cut]), str(BLOCK - 1))}, {BLOCK}")

    def write(self) -> Values:
        """The results."""
        e = self.e
        sizes = [[self.dim(dim) for dim in (made.row if made.out.kind == "keep" else made.dims)]
                 for made in self.kernel.outs]  # fmt: skip
        made = [self.place(one, size) for one, size in zip(self.kernel.outs, sizes, strict=True)]
        where = Places(self.counts, [array.data for array in made], sizes, "1")
        e.together(lambda: Points(e, self.kernel, where, e.thread, e.threads).by_team())
        told = ["true"] if len(self.vars) > len(made) else []  # that a device has done it
        return told + [leaf for one, array in zip(self.kernel.outs, made, strict=True)
                       for leaf in self.result(one, array)]  # fmt: skip

    def dim(self, dim: Dim) -> str:
        if isinstance(dim, tuple):
            var, k = dim
            return self.e.value(var)[2 + k]
        return self.e.one(dim)

    def place(self, made: Made, size: list[str]) -> Array:
        """The array that a result of points goes to."""
        e, target = self.e, made.out.target
        match made.out.kind:
            case "keep":
                dims = [*self.counts, *size]
                return self.over(target, dims) if target is not None else arrays.new_checked(e, made.elem, dims)
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
