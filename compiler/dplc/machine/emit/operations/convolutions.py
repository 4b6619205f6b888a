"""Convolutions -> a call of the runtime library (`rt/convolution.each.rt`), which writes a new array; or kernels.

    y = conv2d x w ...     if rt.device_pays(2 m n k groups):
                      =>       y = a new array, whose copy on the host is not valid; launch (`cuda/convolutions.py`)
                           if that was not done:
                               y = the convolution by the host

A convolution that the host does asks for its operands itself: `place` leaves it alone.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import node
from dpl.prims.convolution import WANTED

from dplc.flat import term as f
from dplc.flat.masked import masked
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.launches.launching import Launching, need_host
from dplc.machine.emit.launches.paying import device_pays, near
from dplc.machine.emit.launches.products import FEW_ELEMENTS, tiles_of
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.emitter import zeros
from dplc.machine.emit.module.layout import leaves
from dplc.machine.emit.operations.array_ops import operand
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.writer import Values
from dplc.passes.device.place import may_be_launched

MOST = 1 << 31  # elements of arrays that kernels divide numbers of


@node
class Sizes:
    """The lengths of a convolution; `steps` are those before the number of groups, `made` those of the result."""

    wanted: int
    images: str
    channels: str
    image: list[str]
    outputs: str
    window: list[str]
    places: list[str]
    steps: list[str]
    groups: str
    made: list[str]


def sizes(e: BodyEmitter, op: f.Op, a: Array, b: Array) -> Sizes:
    wanted, outputs = WANTED[op.op], b.dims[3]
    *steps, groups, rows, columns = (e.one(atom) for atom in op.args[2:])
    size = [rows, columns]
    if wanted == 0:
        return Sizes(0, a.dims[0], a.dims[3], list(a.dims[1:3]), outputs, list(b.dims[:2]), size, steps, groups,
                     [a.dims[0], *size, outputs])  # fmt: skip
    if wanted == 1:
        channels = e.w.mul(groups, b.dims[2])
        return Sizes(1, a.dims[0], channels, size, outputs, list(b.dims[:2]), list(a.dims[1:3]), steps, groups,
                     [a.dims[0], *size, channels])  # fmt: skip
    inputs = e.w.let(f"sdiv i64 {a.dims[3]}, {groups}")
    return Sizes(2, a.dims[0], a.dims[3], list(a.dims[1:3]), outputs, size, list(b.dims[1:3]), steps, groups,
                 [*size, inputs, outputs])  # fmt: skip


def convolution(e: BodyEmitter, op: f.Op) -> Values:
    """A convolution or one of its two transposes, which one `wanted` says; on the device where a launch pays."""
    a, b = (operand(e, atom) for atom in op.args[:2])
    s = sizes(e, op, a, b)

    def on_host() -> Values:
        fresh = arrays.new_array(e, a.elem, s.made)
        data = {0: (fresh, a, b), 1: (a, fresh, b), 2: (b, a, fresh)}[s.wanted]
        numbers = [s.images, s.channels, *s.image, s.outputs, *s.window, *s.places, *s.steps, s.groups,
                   str(masked(op))]  # fmt: skip
        arguments = ", ".join([*(f"ptr {x.data}" for x in data), *(f"i64 {x}" for x in numbers)])
        e.w.do(f"call void @rt.convolve.{a.number.name}(i64 {s.wanted}, {arguments})")
        return fresh.values

    return launched(e, op, (a, b), s, on_host)


def launched(e: BodyEmitter, op: f.Op, factors: tuple[Array, Array], s: Sizes, on_host: Callable[[], Values]) -> Values:
    """The convolution, by the device where that pays.  `on_host` writes the call of the host's."""
    device = e.unit.device
    if device is None or e.in_points or not may_be_launched(op):
        return on_host()

    def here() -> Values:
        for atom in op.args[:2]:
            need_host(e, atom)
        return on_host()

    w, ty = e.w, op.args[0].ty
    launch = _Convolution(e, device, factors, s, masked(op))
    done, *values = w.choose(launch.pays(), ("i1", *leaves(ty)), launch.write, lambda: ["false", *zeros(ty)])
    return w.choose(done, leaves(ty), lambda: values, here)


class _Convolution(Launching):
    """The launch of a convolution: for each group a product, m x k by k x n."""

    def __init__(self, e: BodyEmitter, device: Device, factors: tuple[Array, Array], s: Sizes, mask: int) -> None:
        super().__init__(e, device)
        self.factors, self.s, self.mask, w = factors, s, mask, e.w
        self.label_of_few = f"conv{s.wanted}_few_{factors[0].number.name}"
        inputs, outputs = (w.let(f"sdiv i64 {n}, {s.groups}") for n in (s.channels, s.outputs))
        places, terms = w.product([s.images, *s.places]), w.product([*s.window, inputs])
        self.m, self.n, self.k = {
            0: (places, outputs, terms),
            1: (w.product([s.images, *s.image]), inputs, w.product([*s.window, outputs])),
            2: (terms, outputs, places),
        }[s.wanted]

    def pays(self) -> str:
        """Whether the work pays, and no array is empty or very large."""
        w, work = self.w, number(2.0, "f64")
        for length in (self.m, self.n, self.k, self.s.groups):
            work = w.let(f"fmul double {work}, {w.let(f'sitofp i64 {length} to double')}")
        cell = self.device.cell(self.label_of_few, self.label_of_few)
        fine = near(self.e, device_pays(self.e, work), cell, [x.owner for x in self.factors])
        for dims in (self.s.made, *(x.dims for x in self.factors)):
            before = w.let(f"sub i64 {w.product(dims)}, 1")
            fine = w.let(f"and i1 {fine}, {w.let(f'icmp ult i64 {before}, {MOST - 1}')}")
        return fine

    def write(self) -> Values:
        """Whether it was done, and the result."""
        places = [self.on_device(x) for x in self.factors]
        made = arrays.new_checked(self.e, self.factors[0].elem, self.s.made)
        places.insert(0, self.room_for(made))
        return self.filled(made, lambda: self.convolve(places))

    def convolve(self, places: list[str]) -> None:
        w, s, ty = self.w, self.s, self.factors[0].number.name
        given = [*places, self.m, self.n, self.k, s.channels, *s.image, s.outputs, s.window[1], *s.places, *s.steps,
                 s.groups, str(self.mask)]  # fmt: skip
        params = [("i64", value) for value in given]
        self.device.convolution(s.wanted, ty)
        name = f"conv{s.wanted}_{ty}"
        elements = w.product([self.m, self.n, s.groups])

        def few() -> Values:
            self.launch(self.label_of_few, self.label_of_few, w.mul(elements, "32"), params)
            return []

        def many() -> Values:
            self.launch(name, name, w.mul(w.mul(tiles_of(w, self.m, self.n), s.groups), "256"), params)
            return []

        w.choose(w.let(f"icmp ule i64 {elements}, {FEW_ELEMENTS}"), (), few, many)
