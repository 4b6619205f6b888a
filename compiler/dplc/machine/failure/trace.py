"""Stack traces: object code and return addresses -> the functions that were running, inlined ones included.

The debug information gives each instruction the function it came from and a "line", which is the number of a site plus
one (`Unit.location`).  It is DWARF 4, and read only when a program has failed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from dpl.diagnostics import Bug
from dpl.node import field, node, record

from dplc.machine.object import elf

# what is read of DWARF: tags, attributes, and the bytes of forms of fixed size
UNIT, SUBPROGRAM, INLINED = 0x11, 0x2E, 0x1D
NAME, LOW, HIGH, ORIGIN, RANGES, CALL_LINE = 0x03, 0x11, 0x12, 0x31, 0x55, 0x59
FIXED = {
    0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x17: 4, 0x19: 0,
}  # fmt: skip
STRING, SIGNED, UNSIGNED, REFERENCE, EXPRESSION, STRING_AT, ADDRESS = 0x08, 0x0D, 0x0F, 0x15, 0x18, 0x0E, 0x01
WIDE = (1, 257)  # relocations of 8 bytes, on x86-64 and aarch64; the others are of 4


@node
class Frame:
    """A function that was running, and the site it had reached (-1: unknown)."""

    function: str
    site: int


class Bytes:
    """Reads numbers and strings, one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def number(self, size: int, signed: bool = False) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little", signed=signed)

    def leb(self, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value

    def string(self) -> str:
        end = self.data.index(0, self.at)
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return text


class Object:
    """An ELF object: its debug sections, relocated as if at address 0, and the functions in it."""

    def __init__(self, code: bytes) -> None:
        self.elf = elf.read(code)
        self.text = self.elf.section(".text")

    def section(self, name: str) -> bytes:
        number = self.elf.section(name)
        section = bytearray(self.elf.sections[number].contents)
        for r in self.elf.relocations(number):
            size = 8 if r.kind in WIDE else 4
            value = (self.elf.symbols[r.symbol].value + r.addend) & ((1 << 8 * size) - 1)
            section[r.offset : r.offset + size] = value.to_bytes(size, "little")
        return bytes(section)

    def address(self, name: str) -> int:
        """The address of a symbol in the code."""
        for symbol in self.elf.symbols:
            if symbol.name == name:
                return symbol.value
        raise Bug(f"no symbol {name}")

    def function(self, address: int) -> str:
        """The function of flat whose code contains the address; empty for the runtime's."""
        for symbol in self.elf.symbols:
            inside = symbol.section == self.text and symbol.value <= address < symbol.value + symbol.size
            if inside and symbol.name.startswith("dpl "):
                return symbol.name[4:]
        return ""


@record
class Entry:
    """A function inlined into another: its code ranges, its entry in .debug_info, and the line of the call."""

    ranges: list[tuple[int, int]]
    origin: int
    line: int
    depth: int


@record
class Debug:
    """The debug information of an object."""

    names: dict[int, str] = field(default_factory=dict)  # of functions, by place in .debug_info
    entries: list[Entry] = field(default_factory=list)
    rows: list[tuple[int, int]] = field(default_factory=list)  # the line table: addresses and lines


class Traces:
    """Object codes in memory, each with the address at which the symbol `entry` is: addresses -> functions."""

    def __init__(self, parts: Iterable[tuple[bytes, int]], entry: str) -> None:
        self.loaded = [(code := Object(part), at - code.address(entry), read(code)) for part, at in parts]

    def at(self, address: int) -> list[Frame]:
        """The function whose code has this address and those inlined into it there, outermost first; none for the
        runtime's."""
        for program, base, debug in self.loaded:
            if function := program.function(address - base):
                return list(_running(function, address - base, debug))
        return []


def frames(parts: Iterable[tuple[bytes, int]], entry: str, addresses: list[int]) -> Iterator[Frame]:
    """The functions that were running, outermost first.  `addresses` are return addresses, innermost first."""
    traces = Traces(parts, entry)
    for address in reversed(addresses):
        yield from traces.at(address - 1)  # inside the call instruction


def _running(function: str, place: int, debug: Debug) -> Iterator[Frame]:
    """A function and those inlined into it at a place, outermost first."""
    for inner in sorted(debug.entries, key=lambda e: e.depth):
        if any(low <= place < high for low, high in inner.ranges):
            yield Frame(function, inner.line - 1)
            function = debug.names.get(inner.origin, "")
    row = bisect_right(debug.rows, (place, 1 << 62)) - 1
    yield Frame(function, debug.rows[row][1] - 1 if row >= 0 else -1)


def read(program: Object) -> Debug:
    debug = Debug()
    info = Bytes(program.section(".debug_info"))
    while info.at < len(info.data):
        _read_unit(program, info, debug)
    lines = Bytes(program.section(".debug_line"))
    while lines.at < len(lines.data):
        debug.rows += _read_lines(lines)
    debug.rows.sort()
    return debug


# ---- .debug_info ------------------------------------------------------------------------------------------------


def _read_unit(program: Object, info: Bytes, debug: Debug) -> None:
    start = info.at
    end = info.number(4) + info.at
    info.at += 2  # version
    shapes = _read_shapes(Bytes(program.section(".debug_abbrev"), info.number(4)))
    info.at += 1  # size of addresses
    strings, ranges = program.section(".debug_str"), program.section(".debug_ranges")
    depth = base = 0
    while info.at < end:
        place = info.at
        code = info.leb()
        if code == 0:
            depth -= 1
            continue
        tag, children, attributes = shapes[code]
        values = {name: (form, _read_value(info, form, start, strings)) for name, form in attributes}
        if tag == UNIT:
            base = values.get(LOW, (0, 0))[1]  # a unit of one function counts its ranges from there
        elif tag == SUBPROGRAM and NAME in values:
            debug.names[place] = values[NAME][1]
        elif tag == INLINED:
            origin, line = values.get(ORIGIN, (0, 0))[1], values.get(CALL_LINE, (0, 0))[1]
            debug.entries.append(Entry(_ranges(values, ranges, base), origin, line, depth))
        depth += children


def _read_shapes(data: Bytes) -> dict[int, tuple[int, int, list[tuple[int, int]]]]:
    """The abbreviations: for each code the tag, whether the entry has children, and its attributes with their forms."""
    shapes = {}
    while code := data.leb():
        tag, children, attributes = data.leb(), data.number(1), []
        while True:
            name, form = data.leb(), data.leb()
            if not name:
                break
            attributes.append((name, form))
        shapes[code] = tag, children, attributes
    return shapes


def _read_value(info: Bytes, form: int, unit: int, strings: bytes) -> Any:
    """The value of an attribute: a number or a text, depending on its form."""
    if form == STRING_AT:
        return Bytes(strings, info.number(4)).string()
    if form in (0x11, 0x12, 0x13, 0x14):  # references, from the start of the unit
        return unit + info.number(FIXED[form])
    if form in FIXED:
        return info.number(FIXED[form])
    match form:
        case 0x08:
            return info.string()
        case 0x0D | 0x0F:
            return info.leb(form == SIGNED)
        case 0x15:
            return unit + info.leb()
        case 0x18:
            info.at += info.leb()
            return 0
        case _:
            raise Bug(f"debug information of form {form:#x}")


def _ranges(values: dict, ranges: bytes, base: int) -> list[tuple[int, int]]:
    if LOW in values:
        low, (form, high) = values[LOW][1], values[HIGH]
        return [(low, high if form == ADDRESS else low + high)]
    found, data = [], Bytes(ranges, values[RANGES][1])
    while (pair := (data.number(8), data.number(8))) != (0, 0):
        found.append((base + pair[0], base + pair[1]))
    return found


# ---- .debug_line ------------------------------------------------------------------------------------------------


def _read_lines(data: Bytes) -> Iterator[tuple[int, int]]:
    """Runs one line-number program; yields the rows of its table."""
    end = data.number(4) + data.at
    data.at += 2  # version
    program = data.number(4) + data.at
    step = data.number(1)
    data.at += 2  # maximum operations per instruction, default_is_stmt
    line_base, line_range, first_special = data.number(1, signed=True), data.number(1), data.number(1)
    arguments = [0, *(data.number(1) for _ in range(first_special - 1))]
    data.at = program
    address, line = 0, 1
    while data.at < end:
        code = data.number(1)
        if code >= first_special:
            address += (code - first_special) // line_range * step
            line += line_base + (code - first_special) % line_range
            yield address, line
        elif code == 0:  # an extended opcode
            size = data.leb()
            kind = data.number(1)
            if kind == 2:
                address = data.number(size - 1)
                continue
            data.at += size - 1
            if kind == 1:
                address, line = 0, 1
        elif code == 1:
            yield address, line
        elif code == 2:
            address += data.leb() * step
        elif code == 3:
            line += data.leb(signed=True)
        elif code == 8:
            address += (255 - first_special) // line_range * step
        elif code == 9:
            address += data.number(2)
        else:
            for _ in range(arguments[code]):
                data.leb()
