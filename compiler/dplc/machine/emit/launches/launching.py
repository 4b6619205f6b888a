"""Launches of kernels: what every launch needs, and what the host does before it reads arrays itself.

A launch takes arrays to the device, makes room for its results, writes its parameters to memory and calls the runtime
(`rt/device.rt`).  Where there is no room the host does the work.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.walk import atoms, used
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.emitter import zeros
from dplc.machine.emit.module.layout import counted, leaves
from dplc.machine.llvm.writer import Values

NO_ROOM = "-1"  # an address that the runtime gives if the device's memory is full


def home(e: BodyEmitter, par: f.Par) -> None:
    """Makes valid what the points read on the host."""
    mentioned = {a.name: a for a in (*atoms(par), *used(par.body)) if isinstance(a, f.Var) and a.name in e.env}
    for var in mentioned.values():
        need_host(e, var)


def need_host(e: BodyEmitter, atom: f.Atom) -> None:
    """Makes the host's copies of the arrays of numbers in a value valid."""
    values = e.value(atom)
    for at in plain_arrays(atom.ty):
        if values[at] != "null":
            e.w.do(f"call void @rt.device_home(ptr {values[at]})")


def plain_arrays(ty: f.Type, at: int = 0) -> list[int]:
    """The places of the owners of the arrays of numbers in a value."""
    match ty:
        case f.Arr(elem, _) if not counted(elem):
            return [at]
        case f.Tup(items):
            found: list[int] = []
            for item in items:
                found += plain_arrays(item, at)
                at += len(leaves(item))
            return found
        case _:
            return []


class Launching:
    """A launch under construction.  `addresses` are those on the device.  `fresh` arrays are dropped if the launch is
    not done; `written` ones are valid on the device only if it is."""

    def __init__(self, e: BodyEmitter, device: Device) -> None:
        self.e, self.w, self.device = e, e.w, device
        self.addresses: list[str] = []
        self.fresh: list[Array] = []
        self.written: list[Array] = []
        self.fetched: list[Array] = []  # of these, those that are copied home while the host waits, if they are small
        self.last: list[Callable[[], None]] = []  # what is done when nothing needs the operands any more

    def has_room(self) -> str:
        """Whether all addresses are there."""
        w, fine = self.w, "true"
        for address in self.addresses:
            fine = w.let(f"and i1 {fine}, {w.let(f'icmp ne i64 {address}, {NO_ROOM}')}")
        return fine

    def on_device(self, array: Array) -> str:
        """The address of an array, whose elements are valid there."""
        size = self.w.mul(self.w.product(array.dims), str(array.size))
        if counted(array.elem):
            table = self.device.layouts.content(array.elem)
            data = f"ptr {array.owner}, ptr {array.data}, i64 {size}, ptr {table}, i64 {array.size}"
            return self.address(f"device_in_data({data})")
        return self.address(f"device_in(ptr {array.owner}, ptr {array.data}, i64 {size})")

    def cell_on_device(self, ty: f.Data, cell: str) -> str:
        """The address of a value of a data type."""
        return self.address(f"device_in_cell(ptr {cell}, ptr {self.device.layouts.data(ty)})")

    def room_for(self, array: Array) -> str:
        """The address of a fresh array, whose elements are still to be written."""
        self.fresh.append(array)
        self.written.append(array)
        return self.address(f"device_room(ptr {array.owner})")

    def address(self, call: str, none: str = "") -> str:
        """An address on the device, by a function of the runtime; the launch is not done if there is no room."""
        found = self.w.let(f"call i64 @rt.{call}")
        if none:
            found = self.w.let(f"select i1 {self.w.let(f'icmp eq i64 {found}, {none}')}, i64 {NO_ROOM}, i64 {found}")
        self.addresses.append(found)
        return found

    def over(self, target: Array, dims: list[str], may: bool) -> tuple[Array, str]:
        """The array to write, and its address: the target if it is unique, which may be written, or a new one."""
        e, w = self.e, self.w

        def same() -> Values:
            size = w.mul(w.product(dims), str(target.size))
            place = w.let(f"call i64 @rt.device_in(ptr {target.owner}, ptr {target.data}, i64 {size})")
            return [target.owner, target.data, place]

        def new() -> Values:
            array = arrays.new_checked(e, target.elem, dims)
            return [array.owner, array.data, w.let(f"call i64 @rt.device_room(ptr {array.owner})")]

        alone = e.is_unique(target.owner) if may else "false"
        owner, data, place = w.choose(alone, ("ptr", "ptr", "i64"), same, new)
        self.addresses.append(place)
        array = Array(target.elem, owner, data, tuple(dims))
        other = w.let(f"icmp eq ptr {owner}, {target.owner}")
        self.fresh.append(Array(target.elem, w.let(f"select i1 {other}, ptr null, ptr {owner}"), data, tuple(dims)))
        self.written.append(array)
        left = w.let(f"select i1 {other}, ptr null, ptr {target.owner}")
        self.last.append(lambda: e.drop(target.type, [left, *target.values[1:]]))
        return array, place

    def launch(self, name: str, label: str, threads: str, params: list[tuple[str, str]], arena: int = 0) -> None:
        """Writes the parameters to memory, and a launch."""
        w = self.w
        cells, pointers = w.slot(f"[{8 * max(len(params), 1)} x i8]"), w.slot(f"[{8 * max(len(params), 1)} x i8]")
        for i, (ty, value) in enumerate(params):
            place = w.at(cells, 8 * i)
            w.store(ty, value, place)
            w.store("ptr", place, w.at(pointers, 8 * i))
        cell = self.device.cell(name, label)
        w.do(f"call void @rt.device_launch(ptr {cell}, i64 {threads}, ptr {pointers}, i64 {arena})")

    def done(self) -> None:
        """Notes which arrays were written, after all launches."""
        for step in self.last:
            step()
        for array in self.written:
            self.w.do(f"call void @rt.device_wrote(ptr {array.owner})")
        for array in self.fetched:
            self.w.do(f"call void @rt.device_fetched(ptr {array.owner})")
        self.w.do("call void @rt.device_done()")

    def undone(self) -> None:
        """Frees what was made for a launch that is not done."""
        for array in self.fresh:
            self.e.drop(array.type, array.values)
        self.w.do("call void @rt.device_done()")

    def filled(self, made: Array, fill: Callable[[], None]) -> Values:
        """Whether there was room for all arrays, and the one that is made, which launches fill."""

        def run() -> Values:
            fill()
            self.done()
            return made.values

        def give_up() -> Values:
            self.undone()
            return zeros(made.type)

        fine = self.has_room()
        return [fine, *self.w.choose(fine, leaves(made.type), run, give_up)]
