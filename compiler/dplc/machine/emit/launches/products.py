"""Products of matrices on a device: the host's side.

    c = matmul a b        if rt.device_pays(2 m n k):
                      =>      c = a new array, whose copy on the host is not valid; cuBLAS (`rt/blas.rt`), or launch
                              a kernel of our own (`machine/cuda/products.py`)
                          if that was not done:
                              c = the product by the host

A product that the host does asks for its operands itself: `place` leaves it alone.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.masked import masked
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array, array_of
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.launches.launching import Launching, need_host
from dplc.machine.emit.launches.paying import device_pays, near
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.emitter import zeros
from dplc.machine.emit.module.layout import leaves
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.writer import Values, Writer
from dplc.narrow import expect_type
from dplc.passes.device.place import may_be_launched

FEW_ELEMENTS = 4096  # up to so many have a warp each
SIDE = 64  # of a tile that a block of threads does


def product(e: BodyEmitter, op: f.Op, on_host: Callable[[], Values]) -> Values:
    """The result of matmul or matmul_acc, by the device where that pays.  `on_host` writes the call of the host's."""
    device = e.unit.device
    if device is None or e.in_points or not may_be_launched(op):
        return on_host()

    def here() -> Values:
        for atom in op.args:
            need_host(e, atom)
        return on_host()

    w, types = e.w, leaves(op.args[-1].ty)
    launch = _Product(e, device, op)
    done, *values = w.choose(launch.pays(), ("i1", *types), launch.write, lambda: ["false", *zeros(op.args[-1].ty)])
    return w.choose(done, types, lambda: values, here)


def tiles_of(w: Writer, m: str, n: str) -> str:
    """How many tiles a product of m x n elements has."""
    return w.mul(*(w.let(f"udiv i64 {w.add(length, str(SIDE - 1))}, {SIDE}") for length in (m, n)))


class _Product(Launching):
    """The launch of a product: a is m x k, b is k x n."""

    def __init__(self, e: BodyEmitter, device: Device, op: f.Op) -> None:
        super().__init__(e, device)
        self.op = op
        self.a, self.b = (array_of(atom.ty, e.value(atom)) for atom in op.args[-2:])
        self.ta, self.tb = bool(op.attr("ta")), bool(op.attr("tb"))
        self.m, self.k = reversed(self.a.dims) if self.ta else self.a.dims
        self.also_k, self.n = reversed(self.b.dims) if self.tb else self.b.dims

    def pays(self) -> str:
        """Whether the work pays, and nothing fails."""
        w, work = self.w, number(2.0, "f64")
        for length in (self.m, self.n, self.k):
            work = w.let(f"fmul double {work}, {w.let(f'sitofp i64 {length} to double')}")
        big = near(self.e, device_pays(self.e, work), self.cell_of_dots(), [self.a.owner, self.b.owner])
        fine = w.let(f"icmp eq i64 {self.k}, {self.also_k}")
        if len(self.op.args) == 3:
            old = self.e.value(self.op.args[0])
            same = [w.let(f"icmp eq i64 {x}, {y}") for x, y in zip(old[2:], (self.m, self.n), strict=True)]
            agree = w.let(f"and i1 {same[0]}, {same[1]}")
            fine = w.let(f"and i1 {fine}, {w.let(f'or i1 {self.null(old)}, {agree}')}")
        return w.let(f"and i1 {big}, {fine}")

    def null(self, values: Values) -> str:
        return self.w.let(f"icmp eq ptr {values[1]}, null")

    def cell_of_dots(self) -> str:
        """The cell of the kernel for small products."""
        label = f"dots_{expect_type(f.Num, self.a.elem).name}"
        return self.device.cell(label, label)

    def write(self) -> Values:
        """Whether it was done, and the product."""
        places = [self.on_device(self.a), self.on_device(self.b)]
        if len(self.op.args) == 3:
            made, place, adds = self.accumulator(array_of(self.op.args[0].ty, self.e.value(self.op.args[0])))
        else:
            made = arrays.new_checked(self.e, self.a.elem, [self.m, self.n])
            place, adds = self.room_for(made), "0"
        return self.filled(made, lambda: self.multiply([place, *places], adds))

    def accumulator(self, old: Array) -> tuple[Array, str, str]:
        """The array that the product is added to, its address, and whether it has anything: the operand if it is
        unique, a copy if others own it, or a new one if it is null."""
        w, size = self.w, self.w.mul(self.w.mul(self.m, self.n), str(old.size))
        none = self.null(old.values)

        def there() -> Values:
            return [w.let(f"call i64 @rt.device_in(ptr {old.owner}, ptr {old.data}, i64 {size})")]

        before = w.choose(none, ("i64",), lambda: ["0"], there)[0]
        self.addresses.append(before)
        made, place = self.over(old, [self.m, self.n], may=True)
        moved = w.let(f"icmp ne i64 {place}, {before}")
        copies = w.let(f"and i1 {moved}, {w.let(f'xor i1 {none}, true')}")
        self.copied = (place, before, w.let(f"select i1 {copies}, i64 {size}, i64 0"))
        return made, place, w.let(f"select i1 {none}, i64 0, i64 1")

    copied: tuple[str, str, str] | None = None

    def multiply(self, places: list[str], adds: str) -> None:
        w, ty = self.w, expect_type(f.Num, self.a.elem).name
        if self.copied:
            to, source, size = self.copied
            w.do(f"call void @rt.device_across(i64 {to}, i64 {source}, i64 {size})")
        steps = [*(("1", self.m) if self.ta else (self.k, "1")), *(("1", self.k) if self.tb else (self.n, "1"))]
        mask = masked(self.op)
        given = [*places, self.m, self.n, self.k, *steps, adds, str(mask)]
        params = [("i64", value) for value in given]
        self.device.product(ty)
        elements = w.mul(self.m, self.n)

        def dots() -> Values:
            self.launch(f"dots_{ty}", f"dots_{ty}", w.mul(elements, "32"), params)
            return []

        def large() -> Values:
            takes = w.let(f"call i1 @rt.blas_takes(i64 {self.m}, i64 {self.n}, i64 {self.k})")
            done = w.choose(takes, ("i1",), lambda: self.by_library(ty, places, adds, mask, params), lambda: ["false"])
            w.choose(done[0], (), list, tiles)
            return []

        def tiles() -> Values:
            self.launch(f"matmul_{ty}", f"matmul_{ty}", w.mul(tiles_of(w, self.m, self.n), "256"), params)
            return []

        w.choose(w.let(f"icmp ule i64 {elements}, {FEW_ELEMENTS}"), (), dots, large)

    def by_library(self, ty: str, places: list[str], adds: str, mask: int, params: list[tuple[str, str]]) -> Values:
        """Whether cuBLAS has multiplied.  What it adds to cannot be masked afterwards, so it gives the product then."""
        w, elements = self.w, self.w.mul(self.m, self.n)
        size = w.mul(elements, str(self.a.size))
        given = f"i64 {places[0]}, i64 {mask}, i64 {adds}, i64 {size}"
        place = w.let(f"call i64 @rt.blas_place({given})") if mask else places[0]

        def multiply() -> Values:
            single, ta, tb = (str(x).lower() for x in (ty == "f32", self.ta, self.tb))
            label = f"cublas_{ty}"
            given = [f"i1 {single}", *(f"i64 {x}" for x in (place, *places[1:], self.m, self.n, self.k)), f"i1 {ta}",
                     f"i1 {tb}", f"i64 {'0' if mask else adds}", f"ptr {self.device.cell(label, label)}"]  # fmt: skip
            done = w.let(f"call i1 @rt.blas_multiply({', '.join(given)})")
            if mask:
                more = [*params, ("i64", place)]
                w.choose(done, (), lambda: self.launch(f"mend_{ty}", f"mend_{ty}", elements, more) or [], list)
            return [done]

        return w.choose(w.let(f"icmp ne i64 {place}, 0"), ("i1",), multiply, lambda: ["false"])
