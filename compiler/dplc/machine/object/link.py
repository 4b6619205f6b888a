"""A static linker: ELF objects -> an image that can be loaded at any address.

Programs are linked when they are compiled, so that little is left to do when they are loaded from the cache, and LLVM
is not needed for it.  After Levine, "Linkers and Loaders" (2000): sections get places, symbols get addresses,
relocations are applied.  Symbols that no object defines are imported through the global offset table.  Sections that
nothing refers to, such as elementary functions that the program does not call, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from struct import error, pack, pack_into

from dpl.diagnostics import Bug

from dplc.machine.object import elf
from dplc.machine.object.elf import Object, Relocation
from dplc.machine.object.image import WORD, Image
from dplc.machine.object.relocate import ADDRESS, CALL, MACHINES, SLOT, Kind

UNUSED = ".eh_frame"  # for exceptions, which our code does not have

CODE, CONSTANTS, DATA, ZEROS = range(4)  # the parts of an image

Place = tuple[int, int, int]  # the number of an object, that of its section, and an offset
Target = Place | str  # where a symbol is; the name of an import


def link(objects: Sequence[bytes], exports: Sequence[str]) -> Image:
    """The image of these objects.  `exports` are the symbols whose offsets it has."""
    return Linking([elf.read(code) for code in objects], exports).image(exports)


def link_replaceable(objects: Sequence[bytes], kept: Sequence[str]) -> Image:
    """The image of these objects, whose exports are all its global symbols.  The global functions of the first one are
    called through cells, which may be set to other versions while the program runs: `cells` has their offsets.  The
    other versions call the `kept` functions, too."""
    linking = Linking([elf.read(code) for code in objects], kept, replaceable=True)
    return linking.image([name for name, (i, n, _) in linking.definitions.items() if (i, n) in linking.reached])


class Linking:
    """What is known of one image: the places of sections, stubs and slots, and the words to be written on loading."""

    def __init__(self, objects: Sequence[Object], kept: Sequence[str] = (), replaceable: bool = False) -> None:
        self.objects = objects
        numbers = {o.machine for o in objects}
        if len(numbers) != 1 or not numbers <= MACHINES.keys():
            raise Bug(f"no linker for machine code of {sorted(numbers)}")
        self.machine = MACHINES[numbers.pop()]
        self.definitions = definitions(objects)
        self.size = 0
        self.starts: dict[tuple[int, int], int] = {}  # of sections
        self.slots: dict[Target, int] = {}
        self.stubs: dict[str, int] = {}
        self.imports: dict[str, int] = {}
        self.cells: dict[str, int] = dict.fromkeys(functions(objects[0]), 0) if replaceable else {}
        self.words: list[tuple[int, int, int]] = []
        self.reached = self.reachable(kept)
        self.relocations = list(self.resolved())

    def image(self, exports: Iterable[str]) -> Image:
        self.find_wanted()
        code = self.place_code()
        constants = self.place_constants()
        self.place_data()
        filled = self.size
        self.place(ZEROS)
        contents = self.contents(filled)
        words = b"".join(pack(WORD, *word) for word in sorted(self.words))
        offsets = {name: self.address(self.definitions[name]) for name in exports}
        return Image(bytes(contents), code, constants, self.size, words, list(self.imports), offsets, self.cells)

    # ---- sections

    def reachable(self, kept: Sequence[str]) -> set[tuple[int, int]]:
        """The sections of the first object, those of the kept symbols, and all that they refer to."""
        first = [(0, n) for n, section in enumerate(self.objects[0].sections) if is_loaded(section)]
        reached = {*first, *(self.definitions[name][:2] for name in kept if name in self.definitions)}
        wanted = list(reached)
        while wanted:
            i, n = wanted.pop()
            parted = self.objects[i].parted(n, self.machine.near)
            targets = [self.of(i, symbol) for symbol in {relocation.symbol for relocation in parted.others}]
            places = [target[:2] for target in targets if not isinstance(target, str)]
            for place in (*((i, section) for section in parted.near), *places):
                if place not in reached:
                    reached.add(place)
                    wanted.append(place)
        return reached

    # ---- symbols

    def address(self, target: Target) -> int:
        """The offset in the image.  That of an imported function is its stub's."""
        if isinstance(target, str):
            return self.stubs[target]
        i, section, value = target
        return self.starts[i, section] + value

    def find_wanted(self) -> None:
        """Find the stubs, slots and imports that relocations need."""
        for _, _, _, kind, target, cell in self.relocations:
            if cell is not None:
                self.stubs.setdefault(cell, 0)
                continue
            if isinstance(target, str):
                self.imports.setdefault(target, len(self.imports) + 1)
                if kind.means == CALL:
                    self.stubs.setdefault(target, 0)
                elif kind.means not in (SLOT, ADDRESS):
                    raise Bug(f"`{target}` is in no object, but is used as if it were near")
            if kind.means == SLOT or (kind.means == CALL and isinstance(target, str)):
                self.slots.setdefault(target, 0)

    def resolved(self) -> Iterator[tuple[int, int, Relocation, Kind, Target, str | None]]:
        """The relocations of the reached sections that are not near, each with the numbers of its object and section,
        its kind, what it refers to, and the name of the function if it is a call through a cell."""
        kinds, cells = self.machine.kinds, self.cells
        for i, found in enumerate(self.objects):
            targets = cache(partial(self.of, i))
            for n in found.tables:
                for relocation in found.parted(n, self.machine.near).others if (i, n) in self.reached else ():
                    if (kind := kinds.get(relocation.kind)) is None:
                        raise Bug(f"a relocation of kind {relocation.kind}")
                    name = found.symbols[relocation.symbol].name if cells else None
                    cell = name if name in cells and kind.means == CALL else None
                    yield i, n, relocation, kind, targets(relocation.symbol), cell

    def of(self, i: int, number: int) -> Target:
        """Where a symbol of an object is, by its number."""
        symbol = self.objects[i].symbols[number]
        if symbol.binding != elf.LOCAL and symbol.name in self.definitions:
            return self.definitions[symbol.name]
        return symbol.name if symbol.section == elf.UNDEFINED else (i, symbol.section, symbol.value)

    # ---- places

    def place(self, part: int) -> None:
        """Give places to all reached sections of a part."""
        for i, found in enumerate(self.objects):
            for n, section in enumerate(found.sections):
                if (i, n) in self.reached and is_loaded(section) and part_of(section) == part:
                    self.starts[i, n] = aligned(self.size, section.alignment)
                    self.size = self.starts[i, n] + section.size

    def place_code(self) -> int:
        """Place code and stubs; returns their end."""
        self.place(CODE)
        self.size = aligned(self.size, 16)
        for name in self.stubs:
            self.stubs[name] = self.size
            self.size += self.machine.stub_size
        return self.next_page()

    def place_constants(self) -> int:
        """Place constants and slots; returns their end."""
        self.place(CONSTANTS)
        self.size = aligned(self.size, 8)
        for target in self.slots:
            self.slots[target] = self.size
            self.size += 8
        return self.next_page()

    def place_data(self) -> None:
        """Place variables and cells."""
        self.place(DATA)
        self.size = aligned(self.size, 8)
        for name in self.cells:
            self.cells[name] = self.size
            self.size += 8

    def next_page(self) -> int:
        self.size = aligned(self.size, self.machine.page)
        return self.size

    # ---- contents

    def contents(self, size: int) -> bytearray:
        made = bytearray(size)
        for (i, n), start in self.starts.items():
            contents = self.objects[i].sections[n].contents
            made[start : start + len(contents)] = contents
        for name, start in self.stubs.items():
            self.machine.stub(made, start, self.cells[name] if name in self.cells else self.slots[name])
        for name, cell in self.cells.items():
            self.word(cell, self.definitions[name], 0)
        for target, slot in self.slots.items():
            self.word(slot, target, 0)
        for i, n in self.reached:
            self.write_near(made, i, n)
        for i, n, relocation, kind, target, cell in self.relocations:
            place = self.starts[i, n] + relocation.offset
            if kind.means == ADDRESS:
                self.word(place, target, relocation.addend)
            else:
                at = self.stubs[cell] if cell else self.slots[target] if kind.means == SLOT else self.address(target)
                kind.write(made, place, at + relocation.addend)
        return made

    def write_near(self, made: bytearray, i: int, n: int) -> None:
        """Write what depends on the distance of two sections of an object."""
        start = self.starts[i, n]
        for section, places in self.objects[i].parted(n, self.machine.near).near.items():
            apart = self.starts[i, section] - start
            try:
                for offset, distance in places:
                    pack_into("<i", made, start + offset, apart + distance)
            except error as failure:
                raise Bug("a relocation does not reach: more than 31 bits") from failure

    def word(self, place: int, target: Target, addend: int) -> None:
        if isinstance(target, str):
            self.words.append((place, self.imports[target], addend))
        else:
            self.words.append((place, 0, self.address(target) + addend))


def definitions(objects: Sequence[Object]) -> dict[str, Place]:
    """Where the global symbols are; one that is not weak counts before those that are."""
    found: dict[str, Place] = {}
    weak: set[str] = set()
    for i, each in enumerate(objects):
        for name, symbol in each.defined.items():
            if symbol.section >= elf.RESERVED:
                raise Bug(f"the symbol `{name}` is in no section")
            if name not in found or (name in weak and symbol.binding != elf.WEAK):
                found[name] = i, symbol.section, symbol.value
                (weak.add if symbol.binding == elf.WEAK else weak.discard)(name)
            elif symbol.binding != elf.WEAK:
                raise Bug(f"two objects define `{name}`")
    return found


def functions(code: Object) -> Iterator[str]:
    """The global functions that an object defines."""
    for symbol in code.symbols.global_ones():
        if symbol.binding == elf.GLOBAL and symbol.section and code.sections[symbol.section].flags & elf.EXECUTE:
            yield symbol.name


def is_loaded(section: elf.Section) -> bool:
    if not section.flags & elf.LOAD or section.name == UNUSED:
        return False
    if section.flags & elf.THREAD_LOCAL:
        raise Bug(f"the section {section.name} has variables of threads, which an image cannot have")
    return True


def part_of(section: elf.Section) -> int:
    match section.flags & (elf.WRITE | elf.EXECUTE), section.type == elf.EMPTY:
        case elf.EXECUTE, False:
            return CODE
        case 0, False:
            return CONSTANTS
        case elf.WRITE, zeros:
            return ZEROS if zeros else DATA
        case _:
            raise Bug(f"the section {section.name} is both written and executed, or has nothing that is read")


def aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
