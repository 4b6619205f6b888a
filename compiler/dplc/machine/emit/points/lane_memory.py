"""What points in lanes have in memory: results, arrays that they read and add to, what the steps of their loops keep.

What all lanes add at one place is summed by halves first; where each has a place of its own, it is a vector.  A step
keeps a vector of each number.
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.scalars.vectors import places, vector_type
from dplc.machine.llvm.literals import number
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values, Writer


def splat(w: Writer, width: int, leaf: str, value: str) -> str:
    """A vector of one number."""
    if not value.startswith("%"):
        return f"splat ({leaf} {value})"
    t = f"<{width} x {leaf}>"
    one = w.let(f"insertelement {t} poison, {leaf} {value}, i64 0")
    return w.let(f"shufflevector {t} {one}, {t} poison, <{width} x i32> zeroinitializer")


class Memory:
    """The memory of a strip of `width` lanes, of which those in the `mask` have points, all of them if it is empty."""

    def __init__(self, e: BodyEmitter, width: int) -> None:
        self.e, self.w, self.width = e, e.w, width
        self.mask = ""

    def store(self, ty: str, values: Values, at: str, align: int) -> None:
        """Stores the rows of the points that lie one after the other; `values` are the columns."""
        if ty == "bool":
            flags, ty = vector_type("bool", self.width), "i8"
            values = [self.w.let(f"zext {flags} {value} to <{self.width} x i8>") for value in values]
        count = self.width * len(values)
        t, value = vector_type(ty, count), self.in_rows(ty, values)
        if not self.mask:
            self.w.do(f"store {t} {value}, ptr {at}, align {align}")
            return
        mask, flags = self.mask, vector_type("bool", self.width)
        if count > self.width:
            several = places(i // len(values) for i in range(count))
            mask = self.w.let(f"shufflevector {flags} {mask}, {flags} poison, {several}")
        given = f"{t} {value}, ptr {at}, i32 {align}, <{count} x i1> {mask}"
        self.w.do(f"call void @llvm.masked.store.v{count}{ty}.p0({given})")

    def in_rows(self, ty: str, values: Values) -> str:
        """One vector of all columns, row by row."""
        size, joined, w = self.width, list(values), self.w
        if len(values) == 1:
            return values[0]
        while len(joined) > 1:
            joined += ["poison"] * (len(joined) % 2)
            t, pairs = vector_type(ty, size), zip(joined[::2], joined[1::2], strict=True)
            joined = [w.let(f"shufflevector {t} {a}, {t} {b}, {places(range(2 * size))}") for a, b in pairs]
            size *= 2
        t, order = vector_type(ty, size), [k * self.width + i for i in range(self.width) for k in range(len(values))]
        return w.let(f"shufflevector {t} {joined[0]}, {t} poison, {places(order)}")

    def load(self, ty: str, at: str, align: int) -> str:
        """A vector from memory; masked lanes are not read."""
        if ty == "bool":
            bytes_ = self.load("i8", at, align)
            return self.w.let(f"trunc <{self.width} x i8> {bytes_} to <{self.width} x i1>")
        t = vector_type(ty, self.width)
        if not self.mask:
            return self.w.let(f"load {t}, ptr {at}, align {align}")
        given = f"ptr {at}, i32 {align}, {self.chosen()}, {t} zeroinitializer"
        return self.w.let(f"call {t} @llvm.masked.load.v{self.width}{ty}.p0({given})")

    def gather(self, ty: str, at: str, stride: str, align: int) -> str:
        """What lies `stride` elements apart: loads one by one, as processors that gather are no faster."""
        w, t = self.w, vector_type(ty, self.width)
        if not self.mask:
            made, leaf = "poison", SCALARS[ty]
            for i in range(self.width):
                place = w.let(f"getelementptr inbounds {leaf}, ptr {at}, i64 {w.let(f'mul i64 {stride}, {i}')}")
                one = w.let(f"load {leaf}, ptr {place}, align {align}")
                made = w.let(f"insertelement {t} {made}, {leaf} {one}, i64 {i}")
            return made
        each = self.apart(ty, at, stride)
        given = f"<{self.width} x ptr> {each}, i32 {align}, {self.chosen()}, {t} zeroinitializer"
        return w.let(f"call {t} @llvm.masked.gather.v{self.width}{ty}.v{self.width}p0({given})")

    def gather_at(self, ty: str, at: str, places: str, stride: str, align: int) -> str:
        """What lies at places, so many times `stride` elements apart."""
        w, t = self.w, vector_type(ty, self.width)
        if ty == "bool":
            bytes_ = self.gather_at("i8", at, places, stride, align)
            return w.let(f"trunc <{self.width} x i8> {bytes_} to {t}")
        if stride != "1":
            places = w.let(f"mul <{self.width} x i64> {places}, {splat(w, self.width, 'i64', stride)}")
        each = w.let(f"getelementptr {SCALARS[ty]}, ptr {at}, <{self.width} x i64> {places}")
        given = f"<{self.width} x ptr> {each}, i32 {align}, {self.chosen()}, {t} zeroinitializer"
        return w.let(f"call {t} @llvm.masked.gather.v{self.width}{ty}.v{self.width}p0({given})")

    def element(self, array: Array, indices: Values) -> str:
        """The address of an element."""
        return self.after(array.data, arrays.element_number(self.e, array, indices), array.size)

    def after(self, base: str, number: str, size: int) -> str:
        """The address of the element so many elements on.  With a mask, the first lane may have none there."""
        if not self.mask:
            return self.w.element(base, number, size)
        return self.w.let(f"getelementptr [{size} x i8], ptr {base}, i64 {number}")

    def chosen(self) -> str:
        """The mask, with its type."""
        return f"<{self.width} x i1> {self.mask or 'splat (i1 true)'}"

    # ---- what steps keep

    def room_for(self, number: f.Num, count: str) -> Array:
        """Room for a vector for each of `count` steps."""
        steps = self.w.let(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        return arrays.new_checked(self.e, number, [steps, str(self.width)])

    def keep(self, room: Array, step: str, vector: str) -> None:
        """Writes a vector for a step of a loop."""
        ty = vector_type(room.number.name, self.width)
        self.w.do(f"store {ty} {vector}, ptr {self.of_step(room, step)}, align {room.size}")

    def kept(self, room: Array, step: str) -> str:
        """Reads what was written for a step."""
        ty = vector_type(room.number.name, self.width)
        return self.w.let(f"load {ty}, ptr {self.of_step(room, step)}, align {room.size}")

    def of_step(self, room: Array, step: str) -> str:
        return arrays.address(self.e, room, [step, "0"])

    def release(self, rooms: Sequence[Array]) -> None:
        """Drops rooms, which hold numbers only."""
        for room in rooms:
            self.w.do(f"call void @rt.release(ptr {room.owner})")

    # ---- additions

    def add_at(self, array: Array, places: Values, by_lane: int | None, vector: str) -> None:
        """Adds a number of each lane at its place, which has the number of the lane as index `by_lane`."""
        at = self.element(array, places)
        ty, t = array.number.name, vector_type(array.number.name, self.width)
        if by_lane is None:
            self.add_together(ty, at, array.size, vector)
        elif by_lane + 1 == len(places):
            total = self.w.let(f"fadd {t} {self.load(ty, at, array.size)}, {vector}")
            self.store(ty, [total], at, array.size)
        else:
            stride = self.w.product(array.dims[by_lane + 1 :])
            total = self.w.let(f"fadd {t} {self.gather(ty, at, stride, array.size)}, {vector}")
            self.scatter(ty, total, at, stride, array.size)

    def add_each(self, array: Array, start: Values, stride: str, places: str, vector: str) -> None:
        """Adds a number of each lane at a place so many times `stride` elements after the start, one after the other,
        as lanes may have one place."""
        w, width, ty = self.w, self.width, array.number.name
        leaf, t, flags = SCALARS[ty], vector_type(ty, width), f"<{width} x i1>"
        if self.mask:
            nothing = f"splat ({leaf} {number(-0.0, ty)})"
            vector = w.let(f"select {flags} {self.mask}, {t} {vector}, {t} {nothing}")
            places = w.let(f"select {flags} {self.mask}, <{width} x i64> {places}, <{width} x i64> zeroinitializer")
        first = self.element(array, start)

        def step(i: str) -> None:
            apart = w.mul(w.let(f"extractelement <{width} x i64> {places}, i64 {i}"), stride)
            at = w.let(f"getelementptr {leaf}, ptr {first}, i64 {apart}")
            total = f"fadd {leaf} {w.let(f'load {leaf}, ptr {at}')}, {w.let(f'extractelement {t} {vector}, i64 {i}')}"
            w.do(f"store {leaf} {w.let(total)}, ptr {at}")

        w.repeat(str(width), step)

    def add_together(self, ty: str, at: str, align: int, vector: str) -> None:
        """Adds the sum of all lanes, by halves, to one number."""
        w, leaf, width = self.w, SCALARS[ty], self.width
        t = vector_type(ty, width)
        if self.mask:
            nothing = f"splat ({leaf} {number(-0.0, ty)})"
            vector = w.let(f"select {vector_type('bool', width)} {self.mask}, {t} {vector}, {t} {nothing}")
        while width > 1:
            width //= 2
            half = vector_type(ty, width)
            low, high = [w.let(f"shufflevector {t} {vector}, {t} poison, {places(range(k, k + width))}")
                         for k in (0, width)]  # fmt: skip
            t, vector = half, w.let(f"fadd {half} {low}, {high}")
        total = w.let(f"extractelement {t} {vector}, i64 0")
        before = w.let(f"load {leaf}, ptr {at}, align {align}")
        w.do(f"store {leaf} {w.let(f'fadd {leaf} {before}, {total}')}, ptr {at}, align {align}")

    def scatter(self, ty: str, vector: str, at: str, stride: str, align: int) -> None:
        """What lies `stride` elements apart: stores one by one, as in `gather`."""
        w, t, leaf = self.w, vector_type(ty, self.width), SCALARS[ty]
        if not self.mask:
            for i in range(self.width):
                place = w.let(f"getelementptr inbounds {leaf}, ptr {at}, i64 {w.let(f'mul i64 {stride}, {i}')}")
                w.do(f"store {leaf} {w.let(f'extractelement {t} {vector}, i64 {i}')}, ptr {place}, align {align}")
            return
        each = self.apart(ty, at, stride)
        given = f"{t} {vector}, <{self.width} x ptr> {each}, i32 {align}, {self.chosen()}"
        w.do(f"call void @llvm.masked.scatter.v{self.width}{ty}.v{self.width}p0({given})")

    def apart(self, ty: str, at: str, stride: str) -> str:
        """The addresses of the lanes' elements, which lie `stride` elements apart."""
        w = self.w
        numbers = f"<{', '.join(f'i64 {i}' for i in range(self.width))}>"
        apart = w.let(f"mul <{self.width} x i64> {numbers}, {splat(w, self.width, 'i64', stride)}")
        return w.let(f"getelementptr {SCALARS[ty]}, ptr {at}, <{self.width} x i64> {apart}")
