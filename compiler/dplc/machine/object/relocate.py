"""Relocations: how the address of a symbol enters an instruction or a word, for each kind that LLVM writes.

A kind says what is meant (the symbol itself, a function that may be far away, or the word of the global offset table
that holds the symbol's address), and how the distance or the address is written.  Addresses are offsets from the start
of an image, which is loaded at a multiple of the page size.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack_into, unpack_from

from dpl.diagnostics import Bug
from dpl.node import node

Field = Callable[[bytearray, int, int], None]  # (code, place, target): writes the target at the place

SYMBOL, CALL, SLOT, ADDRESS = range(4)


@node
class Kind:
    """`means` is SYMBOL, CALL (through a stub if the function is in another library), SLOT (the word of the global
    offset table), or ADDRESS (a whole word, which is known only when the image is loaded)."""

    means: int
    write: Field


@node
class Machine:
    """A processor.  `stub` writes code of `stub_size` bytes that jumps to the address in a slot.  Most relocations are
    of the kind `near`, the distance to a symbol in 32 bits."""

    kinds: dict[int, Kind]
    near: int
    page: int
    stub_size: int
    stub: Field


def checked(value: int, bits: int) -> int:
    """A signed number that fits into `bits`."""
    if not -1 << (bits - 1) <= value < 1 << (bits - 1):
        raise Bug(f"a relocation does not reach: {value} in {bits} bits")
    return value


def distance(bits: int) -> Field:
    """The distance from the place, as a number."""

    def write(code: bytearray, place: int, target: int) -> None:
        pack_into("<i" if bits == 32 else "<q", code, place, checked(target - place, bits))

    return write


def no_field(code: bytearray, place: int, target: int) -> None:
    raise Bug("a word with an address is written when the image is loaded")


WORD = Kind(ADDRESS, no_field)

# ---- x86-64


def jump_x86(code: bytearray, place: int, slot: int) -> None:
    """jmp *slot(%rip)"""
    code[place : place + 2] = b"\xff\x25"
    distance(32)(code, place + 2, slot - 4)


X86_64 = Machine(
    {
        1: WORD,  # R_X86_64_64
        2: Kind(SYMBOL, distance(32)),  # PC32
        4: Kind(CALL, distance(32)),  # PLT32
        9: Kind(SLOT, distance(32)),  # GOTPCREL
        24: Kind(SYMBOL, distance(64)),  # PC64
        41: Kind(SLOT, distance(32)),  # GOTPCRELX
        42: Kind(SLOT, distance(32)),  # REX_GOTPCRELX
    },
    near=2, page=4096, stub_size=8, stub=jump_x86,
)  # fmt: skip

# ---- AArch64


def insert(code: bytearray, place: int, bits: int, mask: int) -> None:
    """Replace the bits of an instruction where the mask is 1."""
    (instruction,) = unpack_from("<I", code, place)
    pack_into("<I", code, place, instruction & ~mask | bits & mask)


def branch(bits: int, low: int) -> Field:
    """The distance in instructions, in a field of `bits` that begins at bit `low`."""

    def write(code: bytearray, place: int, target: int) -> None:
        steps = checked(target - place, bits + 2) >> 2
        insert(code, place, steps << low, ((1 << bits) - 1) << low)

    return write


def split(shift: int) -> Field:
    """The distance in bytes (`adr`) or in pages (`adrp`); its two low bits are in a field of their own."""

    def write(code: bytearray, place: int, target: int) -> None:
        steps = checked((target >> shift) - (place >> shift), 21)
        insert(code, place, (steps & 3) << 29 | (steps >> 2 & 0x7FFFF) << 5, 3 << 29 | 0x7FFFF << 5)

    return write


def within_page(shift: int = 0) -> Field:
    """The low 12 bits of the address, in units of 1 << shift bytes."""

    def write(code: bytearray, place: int, target: int) -> None:
        insert(code, place, (target & 0xFFF) >> shift << 10, 0xFFF << 10)

    return write


def jump_arm(code: bytearray, place: int, slot: int) -> None:
    """adrp x16, slot;  ldr x17, [x16, slot];  br x17"""
    pack_into("<III", code, place, 0x90000010, 0xF9400211, 0xD61F0220)
    split(12)(code, place, slot)
    within_page(3)(code, place + 4, slot)


AARCH64 = Machine(
    {
        257: WORD,  # R_AARCH64_ABS64
        260: Kind(SYMBOL, distance(64)),  # PREL64
        261: Kind(SYMBOL, distance(32)),  # PREL32
        273: Kind(SYMBOL, branch(19, 5)),  # LD_PREL_LO19
        274: Kind(SYMBOL, split(0)),  # ADR_PREL_LO21
        275: Kind(SYMBOL, split(12)),  # ADR_PREL_PG_HI21
        276: Kind(SYMBOL, split(12)),  # ADR_PREL_PG_HI21_NC
        277: Kind(SYMBOL, within_page()),  # ADD_ABS_LO12_NC
        278: Kind(SYMBOL, within_page()),  # LDST8_ABS_LO12_NC
        279: Kind(SYMBOL, branch(14, 5)),  # TSTBR14
        280: Kind(SYMBOL, branch(19, 5)),  # CONDBR19
        282: Kind(CALL, branch(26, 0)),  # JUMP26
        283: Kind(CALL, branch(26, 0)),  # CALL26
        284: Kind(SYMBOL, within_page(1)),  # LDST16_ABS_LO12_NC
        285: Kind(SYMBOL, within_page(2)),  # LDST32_ABS_LO12_NC
        286: Kind(SYMBOL, within_page(3)),  # LDST64_ABS_LO12_NC
        299: Kind(SYMBOL, within_page(4)),  # LDST128_ABS_LO12_NC
        311: Kind(SLOT, split(12)),  # ADR_GOT_PAGE
        312: Kind(SLOT, within_page(3)),  # LD64_GOT_LO12_NC
        314: Kind(CALL, distance(32)),  # PLT32
    },
    near=261, page=65536, stub_size=16, stub=jump_arm,
)  # fmt: skip

MACHINES = {62: X86_64, 183: AARCH64}  # by their numbers in ELF
