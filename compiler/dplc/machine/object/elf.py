"""ELF objects, as LLVM writes them: sections, symbols and relocations.

The names and numbers are those of the System V ABI, of its supplements for x86-64 and AArch64, and of `elf.h`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct

from dpl.diagnostics import Bug
from dpl.node import field, node

SYMBOLS, RELOCATIONS, EMPTY = 2, 4, 8  # types of sections; an empty one has a size and no contents (SHT_NOBITS)
WRITE, LOAD, EXECUTE, THREAD_LOCAL = 1, 2, 4, 0x400  # flags of sections
LOCAL, GLOBAL, WEAK = 0, 1, 2  # bindings of symbols
UNDEFINED, RESERVED = 0, 0xFF00  # sections of symbols: none, and numbers that stand for no section

HEADER, SECTION = Struct("<16xHH20xQ10xHHH"), Struct("<IIQQQQIIQQ")
SYMBOL, RELOCATION = Struct("<IBBHQQ"), Struct("<QIIq")


@node
class Section:
    """A part of an object.  `contents` has `size` bytes, except in sections that are all zeros."""

    name: str
    type: int
    flags: int
    contents: bytes
    size: int
    alignment: int


@node
class Symbol:
    """A name for a place in a section, or for something in another object (UNDEFINED)."""

    name: str
    section: int
    value: int
    size: int
    binding: int


class Symbols:
    """The symbols of an object, by number; the `local` ones come first.  Each is read when one asks for it: linking
    needs few of those of the runtime library, whose names took longer to read than most programs to link."""

    def __init__(self, table: bytes = b"", names: bytes = b"", local: int = 0) -> None:
        self.table = table
        self.names = names
        self.local = local
        self.known: dict[int, Symbol] = {}

    def __len__(self) -> int:
        return len(self.table) // SYMBOL.size

    def __iter__(self) -> Iterator[Symbol]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> Symbol:
        if (known := self.known.get(number)) is None:
            name, info, _, section, value, length = self.row(number)
            known = self.known[number] = Symbol(text(self.names, name), section, value, length, info >> 4)
        return known

    def row(self, number: int) -> tuple[int, int, int, int, int, int]:
        """A symbol as it is in the table."""
        return SYMBOL.unpack_from(self.table, number * SYMBOL.size)

    def global_ones(self) -> Iterator[Symbol]:
        """Those that are not local."""
        return (self[number] for number in range(self.local, len(self)))


@node
class Relocation:
    """A place of a section that depends on the address of a symbol."""

    offset: int
    kind: int
    symbol: int
    addend: int


@node
class Parted:
    """The relocations of a section.  `near` are those that write the distance to a local symbol of the object, by the
    section of that: where they are, and the distance if both sections began at 0."""

    near: dict[int, list[tuple[int, int]]]
    others: list[Relocation]


@node
class Object:
    """`defined` are the symbols that other objects may mean.  `tables` has the relocations of a section, as they are in
    the file, by its number.  Most are those of debug information, which linking does not read."""

    machine: int
    sections: list[Section]
    symbols: Symbols
    defined: dict[str, Symbol]
    tables: dict[int, bytes]
    known: dict[int, Parted] = field(default_factory=dict)

    def relocations(self, number: int) -> list[Relocation]:
        """The relocations of a section."""
        return [Relocation(*row) for row in RELOCATION.iter_unpack(self.tables.get(number, b""))]

    def parted(self, number: int, distance: int) -> Parted:
        """The relocations of a section; `distance` is the kind that may be near.  Every program is linked with the same
        runtime library, of which most are: they are found once."""
        if (known := self.known.get(number)) is None:
            known = self.known[number] = Parted({}, [])
            symbols = self.symbols
            for offset, kind, symbol, addend in RELOCATION.iter_unpack(self.tables.get(number, b"")):
                if kind == distance and symbol < symbols.local:
                    _, _, _, section, value, _ = symbols.row(symbol)
                    if section != UNDEFINED:
                        known.near.setdefault(section, []).append((offset, value + addend - offset))
                        continue
                known.others.append(Relocation(offset, kind, symbol, addend))
        return known

    def section(self, name: str) -> int:
        """The number of a section; 0 if there is none of that name."""
        return next((i for i, section in enumerate(self.sections) if section.name == name), 0)


def functions(code: bytes, section: str) -> list[tuple[int, int, str]]:
    """The named places of a section, in order: offsets, sizes and names.  Nothing else of the object is read."""
    _, _, table, size, count, names = HEADER.unpack_from(code)
    rows = [SECTION.unpack_from(code, table + i * size) for i in range(count)]
    data = [b"" if row[1] == EMPTY else code[row[4] : row[4] + row[5]] for row in rows]
    number = next(i for i, row in enumerate(rows) if text(data[names], row[0]) == section)
    found = []
    for i, row in enumerate(rows):
        if row[1] == SYMBOLS:
            for name, _, _, of, value, length in SYMBOL.iter_unpack(data[i]):
                if of == number and length:
                    found.append((value, length, text(data[row[6]], name)))
    return sorted(found)


@lru_cache(maxsize=4)
def read(code: bytes) -> Object:
    """The sections, symbols and relocations of an ELF object.  The last ones are kept, as a process that links several
    programs reads the runtime library each time."""
    if code[:6] != b"\x7fELF\x02\x01":
        raise Bug("machine code that is no 64-bit little-endian ELF object")
    _, machine, table, size, count, names = HEADER.unpack_from(code)
    rows = [SECTION.unpack_from(code, table + i * size) for i in range(count)]
    data = [b"" if row[1] == EMPTY else code[row[4] : row[4] + row[5]] for row in rows]
    sections = [
        Section(text(data[names], row[0]), row[1], row[2], data[i], row[5], max(1, row[8]))
        for i, row in enumerate(rows)
    ]
    symbols, tables = Symbols(), {}
    for i, (_, kind, _, _, _, _, link, of, _, _) in enumerate(rows):
        if kind == SYMBOLS:
            symbols = Symbols(data[i], data[link], of)  # LLVM puts the local ones first, as the ABI asks for
        elif kind == RELOCATIONS:
            tables[of] = data[i]
    defined = {s.name: s for s in symbols.global_ones() if s.section != UNDEFINED}
    return Object(machine, sections, symbols, defined, tables)


def text(strings: bytes, start: int) -> str:
    return strings[start : strings.index(0, start)].decode()
