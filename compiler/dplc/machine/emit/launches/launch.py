"""A Par on a device: the host's side of a launch.

    z = par i < n to keep { ... }        if rt.device_pays(n * work of a point):
                                    =>       z = a new array, whose copy on the host is not valid; launch
                                         if that was not done:
                                             z = the loop, on the host

The arguments of a kernel are the leaves of what its points use, with addresses on the device in place of the host's
(`passes/device/kernels.py` and `machine/cuda/kernel.py` say what it expects).  The host does all points itself if there
is no device, too little work, too little memory, or if a point has failed: then it fails, too, with the usual message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from dpl.node import replace
from dpl.prims.sums import BLOCK

from dplc.flat import term as f
from dplc.flat.dims import path
from dplc.flat.ops.row import Dim
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array, array_of
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.launches.launching import NO_ROOM, Launching, home
from dplc.machine.emit.launches.paying import launch_pays
from dplc.machine.emit.launches.sums import Totals
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.emitter import zeros
from dplc.machine.emit.module.layout import leaves, struct
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type
from dplc.passes.device.kernels import LEAST_GROUPS, MOST_GROUPS, ROOM, THREADS, Kernel, Made
from dplc.passes.device.place import in_turn


def launched(
    e: BodyEmitter, par: f.Par, counts: list[str], variables: tuple[f.Var, ...], on_host: Callable[[], Values]
) -> Values:
    """The results of a Par, by the device where that pays.  `on_host` writes its loop."""
    device, told = e.unit.device, any(out.kind == "done" for out in par.outs)
    if device is None or e.in_points or par.ordered:
        return on_host()

    def here() -> Values:
        if told:
            return on_host()
        home(e, par)
        e.in_points = True
        values = on_host()
        e.in_points = False
        return values

    kernel = device.of(par, e.fn)
    if kernel is None:
        return on_host() if in_turn(par) else here()
    device.recursive |= kernel.recursive
    types = [leaf for var in variables[told:] for leaf in leaves(var.ty)]
    w = e.w
    pays = launch_pays(e, par, kernel, counts, device.cell(kernel.name, label(kernel)))
    nothing = [zero for var in variables[told:] for zero in zeros(var.ty)]
    launch = _Launch(e, device, kernel, counts)
    done, *values = w.choose(pays, ("i1", *types), launch.write, lambda: ["false", *nothing])
    said = ["true"] * told
    return w.choose(done, ["i1"] * told + types, lambda: said + values, here)


class _Launch(Launching):
    """A launch under construction: the kernel's parameters, and what its results will be."""

    def __init__(self, e: BodyEmitter, device: Device, kernel: Kernel, counts: list[str]) -> None:
        super().__init__(e, device)
        self.kernel = kernel
        self.counts = counts[: len(kernel.space)]
        self.params: list[tuple[str, str]] = []  # types and operands
        self.results: list[Callable[[], Values]] = []  # each result of the Par, once the kernels have run
        self.before: list[Callable[[], object]] = []  # what prepares the memory
        self.after: list[Callable[[], object]] = []  # more launches, and copies of numbers to the host
        self.across: list[Callable[[], object]] = []  # copies of numbers that stay on the device
        self.waits = False  # for numbers

    def write(self) -> Values:
        """Whether it was done, and the values of the variables."""
        w = self.w
        types = [leaf for made in self.kernel.outs for leaf in self.types(made)]
        self.points = w.product(self.counts)
        self.prepare()
        done = w.choose(self.has_room(), ("i1",), self.run, lambda: ["false"])[0]
        values = w.choose(done, types, self.finish, self.give_up)
        return [done, *values]

    def types(self, made: Made) -> Sequence[str]:
        if made.out.kind == "keep":
            rank = len(self.kernel.space) + len(made.row)
            return leaves(f.Arr(made.elem, rank))
        if made.out.kind == "last":
            return leaves(f.Arr(made.elem, 1))
        if made.out.kind == "fold" and (rank := made.out.rank or made.out.kept):
            return leaves(f.Arr(made.elem, int(rank)))
        return leaves(made.value.ty)

    # ---- parameters

    def prepare(self) -> None:
        """Takes the arguments to the device, and makes room for the results."""
        kernel = self.kernel
        for var in kernel.args:
            self.argument(var.name, var.ty, self.e.value(var))
        for atom, count in zip(kernel.space, self.counts, strict=True):
            self.length(atom, count)
        adds = [made for made in kernel.outs if made.out.kind == "add" and not made.own]
        self.groups = self.number_of_groups(adds) if kernel.geometry == "groups" else "0"
        numbers = Counter(made.elem for made in kernel.outs if made.out.kind == "fold" and not made.out.rank)
        blocks = self.blocks_of(self.points) if numbers else ""
        self.totals = {ty: Totals(self, ty, blocks, count) for ty, count in numbers.items()}
        for made in kernel.outs:
            match made.out.kind:
                case "keep":
                    self.keep(made)
                case "last":
                    self.last_points(made)
                case "fold" if made.out.rank:
                    self.columns(made)
                case "fold":
                    self.sum(made)
                case "add" if made.own:
                    self.add_in_place(made)
                case "add":
                    self.add(made)
                case "done":
                    pass  # a kernel has none: whether it was launched says the same
        if kernel.geometry == "groups":
            self.params.append(("i64", self.groups))
        self.sums()

    def argument(self, name: str, ty: f.Type, values: Values) -> None:
        if isinstance(ty, f.Tup):
            at = 0
            for i, item in enumerate(ty.items):
                size = len(leaves(item))
                self.argument(path(name, i), item, values[at : at + size])
                at += size
        elif isinstance(ty, f.Arr):
            self.params.append(("i64", self.on_device(array_of(ty, values))))
            self.params += [("i64", n) for k, n in enumerate(values[2:]) if (name, k) not in self.kernel.known]
        elif isinstance(ty, f.Data):
            self.params.append(("i64", self.cell_on_device(ty, values[0])))
        else:
            self.params.append((leaves(ty)[0], values[0]))

    def length(self, dim: Dim, operand: str) -> None:
        """A length, unless the kernel knows it."""
        if not isinstance(dim, f.Const):
            self.params.append(("i64", operand))

    def temporary(self, elem: f.Type, count: str) -> str:
        return self.address(f"device_temp(i64 {self.w.mul(count, str(struct(elem).size))})", none="0")

    def blocks_of(self, count: str) -> str:
        return self.w.let(f"udiv i64 {self.w.add(count, str(BLOCK - 1))}, {BLOCK}")

    def number_of_groups(self, adds: list[Made]) -> str:
        """The groups of points (`groups_of` in `passes/device/kernels.py`); too few are given up."""
        w, size = self.w, "0"
        for made in adds:
            size = w.add(size, w.product([self.e.length_of(dim) for dim in made.dims]))
        most = w.let(f"udiv i64 {ROOM}, {w.let(f'call i64 @llvm.umax.i64(i64 {size}, i64 1)')}")
        for other in (self.points, str(MOST_GROUPS)):
            most = w.let(f"call i64 @llvm.smin.i64(i64 {most}, i64 {other})")
        least = w.let(f"call i64 @llvm.smin.i64(i64 {self.points}, i64 {LEAST_GROUPS})")
        least = w.let(f"call i64 @llvm.smax.i64(i64 {least}, i64 1)")
        few = w.let(f"icmp slt i64 {most}, {least}")
        self.addresses.append(w.let(f"select i1 {few}, i64 {NO_ROOM}, i64 0"))
        return most

    # ---- results

    def keep(self, made: Made) -> None:
        """An array of all values, written over the target if it has no other owner."""
        e, dims = self.e, [*self.counts, *[self.e.length_of(dim) for dim in made.row]]
        target = made.out.target
        if target is None:
            array = arrays.new_checked(e, made.elem, dims)
            place = self.room_for(array)
            if self.kernel.geometry == "team" and all(isinstance(dim, f.Const) for dim in made.row):
                self.fetched.append(array)
                self.waits = True
                self.after.append(lambda: self.w.do(f"call void @rt.device_fetch(ptr {array.owner})"))
        else:
            array, place = self.over(array_of(target.ty, e.value(target)), dims, self.kernel.in_place)
        self.params.append(("i64", place))
        for dim, operand in zip(made.row, dims[len(self.counts) :], strict=True):
            self.length(dim, operand)
        array = replace(array, dims=tuple(made.out.ordered(array.dims)))
        self.results.append(lambda: array.values)

    def last_points(self, made: Made) -> None:
        """The greatest number of a point for each place: whoever comes later does not matter to a maximum."""
        (length,) = [self.e.length_of(dim) for dim in made.dims]
        array = arrays.new_checked(self.e, made.elem, [length])
        place, size = self.room_for(array), self.w.mul(length, str(array.size))
        self.params.append(("i64", place))
        self.length(made.dims[0], length)
        self.before.append(lambda: self.w.do(f"call void @rt.device_zero(i64 {place}, i64 {size})"))
        self.results.append(lambda: array.values)

    def sum(self, made: Made) -> None:
        """A number: first come the sums of blocks."""
        ty = made.elem
        totals = self.totals[ty]
        partial, at = totals.next()
        if self.kernel.geometry == "groups":
            values = self.temporary(ty, self.points)
            self.params.append(("i64", values))
            self.later("blocks", ty, self.w.mul(totals.blocks, "32"), [partial, values, self.points])
        else:
            self.params.append(("i64", partial))
        if made.out.kept:
            self.result(made, totals.on_device(at), ["1"], self.across)
        else:
            self.waits = True
            self.results.append(lambda: totals.on_host(at))

    def sums(self) -> None:
        """What is done with the sums of blocks: they are added as a tree, and those that the host needs are copied."""
        for totals in self.totals.values():
            totals.complete()
        self.after += self.across
        for ty, totals in self.totals.items():
            if any(made.out.kind == "fold" and not made.out.kept and made.elem == ty for made in self.kernel.outs):
                self.after.append(totals.fetch)

    def columns(self, made: Made) -> None:
        """Sums of rows: those of blocks of rows are added in order."""
        w, cut = self.w, len(self.counts) - made.out.rank
        dims = self.counts[cut:]
        columns, blocks = w.product(dims), self.blocks_of(w.product(self.counts[:cut]))
        partial = self.temporary(made.elem, w.mul(w.let(f"call i64 @llvm.umax.i64(i64 {blocks}, i64 1)"), columns))
        self.params.append(("i64", partial))
        self.later("columns", made.elem, columns, [partial, blocks, columns], unless_one=blocks)
        self.result(made, partial, dims, self.after)

    def result(self, made: Made, partial: str, dims: list[str], moment: list[Callable[[], object]]) -> None:
        """The array of sums that are at a place on the device."""
        array = arrays.new_checked(self.e, made.elem, dims)
        place = self.room_for(array)
        size = self.w.mul(self.w.product(dims), str(array.size))
        moment.append(lambda: self.w.do(f"call void @rt.device_across(i64 {place}, i64 {partial}, i64 {size})"))
        self.results.append(lambda: array.values)

    def add(self, made: Made) -> None:
        """What groups of points have added to copies is added to the target in order."""
        e, w, out = self.e, self.w, made.out
        assert out.target is not None
        target = array_of(out.target.ty, e.value(out.target))
        dims = [self.e.length_of(dim) for dim in made.dims]
        size = w.product(dims)
        copies = self.temporary(made.elem, w.mul(self.groups, size))
        bytes_ = w.mul(size, str(target.size))
        array, place = self.onto(target, made, dims, True, self.after)
        self.params.append(("i64", copies))
        for dim, operand in zip(made.dims, dims, strict=True):
            self.length(dim, operand)
        all_bytes = w.mul(self.groups, bytes_)
        self.before.append(lambda: w.do(f"call void @rt.device_zero(i64 {copies}, i64 {all_bytes})"))
        self.later("add", made.elem, bytes_, [place, copies, self.groups, size])  # a thread for each byte of a sector
        self.results.append(lambda: array.values)

    def onto(
        self, target: Array, made: Made, dims: Values, may: bool, moment: list[Callable[[], object]]
    ) -> tuple[Array, str]:
        """What is added to, and its place: the target where this `may` be, or a copy of it; zeros if it is null.  The
        copy and the zeros are made at that `moment`."""
        e, w, out = self.e, self.w, made.out
        bytes_ = w.mul(w.product(dims), str(target.size))
        if not isinstance(out.target, f.Var):
            array = arrays.new_checked(e, made.elem, dims)
            place = self.room_for(array)
            moment.append(lambda: w.do(f"call void @rt.device_zero(i64 {place}, i64 {bytes_})"))
            return array, place
        missing = w.let(f"icmp eq ptr {target.data}, null")
        self.addresses.append(w.let(f"select i1 {missing}, i64 {NO_ROOM}, i64 0"))
        old = self.on_device(target)
        array, place = self.over(target, dims, may=may)
        other = w.let(f"icmp ne ptr {array.owner}, {target.owner}")
        moved = w.let(f"select i1 {other}, i64 {bytes_}, i64 0")
        moment.append(lambda: w.do(f"call void @rt.device_across(i64 {place}, i64 {old}, i64 {moved})"))
        return array, place

    def add_in_place(self, made: Made) -> None:
        """Points add to the target itself, or to a copy of it, each at places of its own."""
        e, out = self.e, made.out
        assert out.target is not None
        target, dims = array_of(out.target.ty, e.value(out.target)), [self.e.length_of(dim) for dim in made.dims]
        array, place = self.onto(target, made, dims, self.kernel.in_place, self.before)
        self.params.append(("i64", place))
        for dim, operand in zip(made.dims, dims, strict=True):
            self.length(dim, operand)
        self.results.append(lambda: array.values)

    # ---- launches

    def later(self, name: str, ty: f.Type, threads: str, given: list[str], unless_one: str = "") -> None:
        """Another launch, of a kernel that completes results; not needed if `unless_one` is at most 1."""
        kernel = f"{name}_{expect_type(f.Num, ty).name}"

        def launch() -> None:
            self.launch(kernel, kernel, threads, [("i64", value) for value in given])

        def perhaps() -> None:
            more = self.w.let(f"icmp sgt i64 {unless_one}, 1")
            self.w.choose(more, (), lambda: launch() or [], list)

        self.after.append(perhaps if unless_one else launch)

    def threads(self) -> str:
        """How many threads the kernel can use."""
        w, kernel = self.w, self.kernel
        match kernel.geometry:
            case "points":
                return self.points
            case "sums":
                return w.mul(self.blocks_of(self.points), str(THREADS))
            case "rows":
                rank = max(made.out.rank for made in kernel.outs)
                cut = len(self.counts) - rank
                return w.mul(self.blocks_of(w.product(self.counts[:cut])), w.product(self.counts[cut:]))
            case "groups":
                return self.groups
            case "team":
                return str(THREADS)

    def at_once(self) -> bool:
        """True if what comes after a kernel that has failed does no harm, so the host need not wait in between."""
        return self.kernel.fails and all(made.own or made.out.kind != "add" for made in self.kernel.outs)

    def run(self) -> Values:
        """Launches; whether all points were done.  A kernel whose threads lacked memory is launched again."""
        w = self.w
        if not self.kernel.fails:
            self.start()
            return ["true"]

        def again(_: Values) -> Values:
            w.do("call void @rt.device_watch()")
            self.start()
            if self.at_once():
                self.complete()
            return [w.let("call i64 @rt.device_outcome()")]

        last = w.loop(("i64",), ["2"], lambda state: w.let(f"icmp eq i64 {state[0]}, 2"), again)
        return [w.let(f"icmp eq i64 {last[0]}, 0")]

    def start(self) -> None:
        kernel = self.kernel
        for step in self.before:
            step()
        arena = 2 if kernel.geometry == "team" else int(kernel.arena)
        self.launch(kernel.name, label(kernel), self.threads(), self.params, arena)

    def complete(self) -> None:
        for step in self.after:
            step()

    def finish(self) -> Values:
        if not self.at_once():
            self.complete()
            if self.waits:
                self.w.do("call void @rt.device_settle()")
        values = [leaf for result in self.results for leaf in result()]
        self.done()
        return values

    def give_up(self) -> Values:
        self.undone()
        return [zero for made in self.kernel.outs for zero in _zeros(self.types(made))]


def _zeros(types: Sequence[str]) -> Values:
    return ["null" if leaf == "ptr" else "false" if leaf == "i1" else "0" if leaf[0] == "i" else
            "0xH0000" if leaf == "half" else "0.0" for leaf in types]  # fmt: skip


def label(kernel: Kernel) -> str:
    """What the table of times calls a kernel: where its points are, what they do."""
    span = kernel.par.span
    place = f"{span.source.name}:{span.line}" if span != f.NOWHERE else "an operation of the compiler"
    return f"{place} ({kernel.geometry}, {kernel.name})"
