"""Data from outside of kernels: tables that say where pointers are in a value, for the copy on a device.

    [for t in trees -> total t]        a point reads cells that the host has made: `rt/uploads.rt` copies all that
                                       `trees` refers to into one block of the device, and sets the pointers anew

A table is made once for each type:

    content    the number of parts with pointers; then for each its offset, kind, table, rank or words, size of elements
    data       pointers below this have no cell, whether there is only one kind of cell; then for each constructor the
               size of its payload and the table of its content
"""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.machine.emit.module.layout import counted, has_nullary, leaves, struct
from dplc.machine.emit.module.memory import parts

ARRAY, DATA, HIDDEN = range(3)  # kinds; points neither see nor use what is hidden: strings and references


class Layouts:
    """The tables of a program under construction."""

    def __init__(self, datas: dict[str, f.DataDecl]) -> None:
        self.datas = datas
        self.names: dict[tuple[str, f.Type], str] = {}
        self.texts: list[str] = []

    def content(self, ty: f.Type) -> str:
        """The address of the table of a value in memory; null if it has no pointers."""
        return self.table("content", ty, self.parts(ty)) if counted(ty) else "null"

    def data(self, ty: f.Data) -> str:
        return self.table("data", ty, self.constructors(ty))

    def table(self, what: str, ty: f.Type, words: Iterator[str]) -> str:
        """A table by its name, which the words may mention."""
        key = what, ty
        if key not in self.names:
            name = self.names[key] = f'@"{what} {len(self.names)} on a device"'
            items = list(words)
            types = ", ".join(item.split()[0] for item in items)
            self.texts.append(f"{name} = internal constant {{ {types} }} {{ {', '.join(items)} }}\n")
        return self.names[key]

    def parts(self, ty: f.Type) -> Iterator[str]:
        offsets, found = struct(ty).offsets, list(parts(ty))
        yield f"i64 {len(found)}"
        for k, part in found:
            kind, table, rank, size = self.part(part)
            yield from (f"i64 {offsets[k]}", f"i64 {kind}", f"ptr {table}", f"i64 {rank}", f"i64 {size}")

    def part(self, ty: f.Type) -> tuple[int, str, int, int]:
        match ty:
            case f.Arr(elem, rank):
                return ARRAY, self.content(elem), rank, struct(elem).size
            case f.Data():
                return DATA, self.data(ty), 0, 0
            case _:
                return HIDDEN, "null", len(leaves(ty)), 0

    def constructors(self, ty: f.Data) -> Iterator[str]:
        payloads = self.datas[ty.name].payloads
        bound = 2 * len(payloads) if has_nullary(self.datas[ty.name]) else 1
        boxed = [payload for payload in payloads if payload is not None]
        yield from (f"i64 {bound}", f"i64 {int(len(boxed) == 1)}")
        for payload in boxed if len(boxed) == 1 else payloads:
            shape = f.UNIT if payload is None else payload
            yield from (f"i64 {struct(shape).size}", f"ptr {self.content(shape)}")
