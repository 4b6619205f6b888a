"""The linker: objects of both architectures become images, which run wherever they are put."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from dpl.diagnostics import Bug
from dplc.machine.llvm import target
from dplc.machine.llvm.api import parsed
from dplc.machine.object import elf
from dplc.machine.object.image import Image
from dplc.machine.object.link import Linking, link
from dplc.machine.object.relocate import AARCH64, X86_64, checked
from dplc.machine.run.program import LoadedImage, Missing, address

ARCHITECTURES = ("x86_64", "aarch64")

# The result is 6 + 2 * 7 + 100 + 300 = 420 only if every reference leads where it should.
MAIN = """
@counter = internal global i64 5
@zeros = internal global [100000 x i64] zeroinitializer
@table = internal constant [2 x ptr] [ptr @more, ptr @twice]
@far = external global i64
@near = external hidden global i64
@small = internal constant [3 x i8] c"abc"
declare i64 @outside(i64)
declare hidden i64 @twice(i64)
define internal i64 @more(i64 %x) noinline {
  %c = load i64, ptr @counter
  %s = add i64 %c, %x
  store volatile i64 %s, ptr @counter
  ret i64 %s
}
define i64 @dpl_entry() {
  %a = call i64 @more(i64 1)
  %t = getelementptr [2 x ptr], ptr @table, i64 0, i64 1
  %f = load volatile ptr, ptr %t
  %n = load i64, ptr @near
  %b = call i64 %f(i64 %n)
  %z = load volatile i64, ptr getelementptr ([100000 x i64], ptr @zeros, i64 0, i64 99999)
  %o = load i64, ptr @far
  %c = call i64 @outside(i64 %o)
  %1 = add i64 %a, %b
  %2 = add i64 %1, %c
  %3 = add i64 %2, %z
  ret i64 %3
}
define void @dpl_flush() { ret void }
"""
OTHER = """
@near = hidden global i64 7
define hidden i64 @twice(i64 %x) { %1 = shl i64 %x, 1
  ret i64 %1 }
define weak i64 @more(i64 %x) { ret i64 0 }
"""
FOREIGN = """
@far = global i64 300
define i64 @outside(i64 %x) { %1 = add i64 %x, 100
  ret i64 %1 }
"""


def compiled(text: str, arch: str = "x86_64") -> bytes:
    where = target.to_build(f"{arch}-linux", None)
    head = f'target datalayout = "{where.machine().layout}"\ntarget triple = "{where.triple}"\n'
    with parsed(head + text) as module:
        return where.machine().emit_object(module)


def images(arch: str) -> tuple[Image, Image]:
    """Of a program in two objects, and of a library that it imports from."""
    image = link([compiled(MAIN, arch), compiled(OTHER, arch)], ["dpl_entry", "dpl_flush"])
    assert sorted(image.imports) == ["far", "outside"]
    return image, link([compiled(FOREIGN, arch)], ["far", "outside"])


# ---- running

STARTS = {  # call the function whose address is in the word behind, and exit with half of what it returns
    "x86_64": (62, bytes.fromhex("ff 15 0f 00 00 00  89 c7  d1 ef  b8 3c 00 00 00  0f 05 cc cc cc cc")),
    "aarch64": (183, struct.pack("<6I", 0x580000D0, 0xD63F0200, 0xD341FC00, 0xD2800BA8, 0xD4000001, 0)),
}
PLACES = (0x10000000, 0x20000000, 0x180000000)  # of the start, the program, and the library far away


def executable(arch: str) -> bytes:
    """An executable for Linux that has both images and no C library."""
    program, library = images(arch)
    imports = [PLACES[2] + library.exports[name] for name in program.imports]
    machine, start = STARTS[arch]
    parts = [bytearray(start + struct.pack("<Q", PLACES[1] + program.exports["dpl_entry"]))]
    for image, addresses in ((program, [PLACES[1], *imports]), (library, [PLACES[2]])):
        memory = bytearray(image.size)
        image.fill(memory, addresses)
        parts.append(memory)
    file = bytearray(65536)
    headers = b""
    for place, part in zip(PLACES, parts, strict=True):
        headers += struct.pack("<IIQQQQQQ", 1, 7, len(file), place, place, len(part), len(part), 65536)
        file += part + bytes(-len(part) % 65536)
    head = struct.pack("<7B9xHHIQQQIHHHHHH", *b"\x7fELF\2\1\1", 2, machine, 1, PLACES[0], 64, 0, 0, 64, 56, 3, 0, 0, 0)
    file[: len(head + headers)] = head + headers
    return bytes(file)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_an_image_runs(arch: str, tmp_path: Path) -> None:
    """By itself, or by qemu if it is for another processor."""
    runner = [] if arch == target.arch() else [f"qemu-{arch}-static"]
    if runner and not shutil.which(runner[0]):
        pytest.skip(f"there is no {runner[0]}")
    file = tmp_path / "program"
    file.write_bytes(executable(arch))
    file.chmod(0o700)
    assert subprocess.run([*runner, file], timeout=60, check=False).returncode == 420 // 2


def test_an_image_is_loaded_and_imports_from_c() -> None:
    text = """
    @stderr = external global ptr
    declare i64 @strlen(ptr)
    declare double @cbrt(double)
    @word = internal constant [6 x i8] c"hello\\00"
    @place = internal global ptr @strlen
    define i64 @dpl_entry() {
      %f = load volatile ptr, ptr @place
      %n = call i64 %f(ptr @word)
      %m = call i64 @strlen(ptr @word)
      %s = load ptr, ptr @stderr
      %is = icmp ne ptr %s, null
      %one = zext i1 %is to i64
      %c = call double @cbrt(double 27.0)
      %i = fptosi double %c to i64
      %1 = mul i64 %n, %m
      %2 = add i64 %1, %one
      %3 = add i64 %2, %i
      ret i64 %3
    }
    define void @dpl_flush() { ret void }
    """
    image = link([compiled(text, target.arch())], ["dpl_entry", "dpl_flush"])
    loaded = [LoadedImage(image) for _ in range(2)]
    assert [each.entry(0, None, 0, 0, None) for each in loaded] == [29, 29]
    assert loaded[0].base != loaded[1].base


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_parts_begin_on_pages(arch: str) -> None:
    image, _ = images(arch)
    page = {"x86_64": X86_64, "aarch64": AARCH64}[arch].page
    assert image.code % page == image.constants % page == 0
    assert 0 < image.code < image.constants < len(image.contents) < image.size - 700_000  # zeros are not kept


# ---- what cannot be linked


def refused(*texts: str) -> str:
    with pytest.raises(Bug) as error:
        link([compiled(text) for text in texts], ["f"])
    return str(error.value)


def test_two_definitions() -> None:
    text = "define void @f() { ret void }"
    assert refused(text, text) == "two objects define `f`"


def test_variables_of_threads() -> None:
    assert ".tbss" in refused("@x = thread_local global i64 0")


def test_objects_for_two_processors() -> None:
    with pytest.raises(Bug, match=r"no linker for machine code of \[62, 183\]"):
        link([compiled("", arch) for arch in ARCHITECTURES], [])


def test_something_near_that_is_nowhere() -> None:
    text = "@x = external hidden global i64\ndefine i64 @f() { %1 = load i64, ptr @x\n ret i64 %1 }"
    assert refused(text) == "`x` is in no object, but is used as if it were near"


def test_an_unknown_kind_of_relocation() -> None:
    found = elf.read(compiled("declare void @g()\ndefine void @f() { call void @g()\n ret void }"))
    for number in found.tables:
        rows = [elf.RELOCATION.pack(r.offset, 99, r.symbol, r.addend) for r in found.relocations(number)]
        found.tables[number] = b"".join(rows)
    with pytest.raises(Bug, match="a relocation of kind 99"):
        Linking([found]).image(["f"])


def test_what_is_no_object() -> None:
    with pytest.raises(Bug, match="no 64-bit little-endian ELF object"):
        link([b"MZ"], [])


def test_a_symbol_of_no_library() -> None:
    with pytest.raises(Missing, match="no_such_function"):
        address("no_such_function")


# ---- instructions


@pytest.mark.parametrize("bits", (14, 21, 32))
def test_reach(bits: int) -> None:
    most = (1 << (bits - 1)) - 1
    assert checked(most, bits) == most and checked(-most - 1, bits) == -most - 1
    for beyond in (most + 1, -most - 2):
        with pytest.raises(Bug, match="does not reach"):
            checked(beyond, bits)


def sign(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


# the kinds of relocations of AArch64, each with what its field says of place and target
READ = {
    274: lambda i: (sign((i >> 5 & 0x7FFFF) << 2 | i >> 29 & 3, 21), lambda p, t: t - p),
    275: lambda i: (sign((i >> 5 & 0x7FFFF) << 2 | i >> 29 & 3, 21), lambda p, t: (t >> 12) - (p >> 12)),
    277: lambda i: (i >> 10 & 0xFFF, lambda p, t: t & 0xFFF),
    279: lambda i: (sign(i >> 5 & 0x3FFF, 14), lambda p, t: (t - p) >> 2),
    280: lambda i: (sign(i >> 5 & 0x7FFFF, 19), lambda p, t: (t - p) >> 2),
    283: lambda i: (sign(i & 0x3FFFFFF, 26), lambda p, t: (t - p) >> 2),
    284: lambda i: (i >> 10 & 0xFFF, lambda p, t: (t & 0xFFF) >> 1),
    285: lambda i: (i >> 10 & 0xFFF, lambda p, t: (t & 0xFFF) >> 2),
    286: lambda i: (i >> 10 & 0xFFF, lambda p, t: (t & 0xFFF) >> 3),
    299: lambda i: (i >> 10 & 0xFFF, lambda p, t: (t & 0xFFF) >> 4),
}


@pytest.mark.parametrize("kind", READ)
def test_fields_of_instructions(kind: int) -> None:
    """The field has what it should, whatever was there, and no other bit changes."""
    for place, goal in ((0x1000, 0x1010), (0x2FFC, 0x1FF0), (0x1004, 0x8010), (0x8000, 0x1230)):
        found = []
        for before in (0, 0xFFFFFFFF):
            code = bytearray(struct.pack("<I", before)) * (place // 4 + 1)
            AARCH64.kinds[kind].write(code, place, goal)
            (instruction,) = struct.unpack_from("<I", code, place)
            found.append(instruction)
            value, want = READ[kind](instruction)
            assert value == want(place, goal)
        field = ~(found[0] ^ found[1]) & 0xFFFFFFFF  # where both are the same
        assert field.bit_count() in (12, 14, 19, 21, 26)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_local_symbols_are_not_read(arch: str) -> None:
    """They come first; of thousands in the runtime library, most programs need none."""
    found = elf.read(compiled(MAIN, arch))
    assert all(symbol.binding == elf.LOCAL for symbol in list(found.symbols)[: found.symbols.local])
    found.symbols.known.clear()
    assert {symbol.name for symbol in found.symbols.global_ones()} > {"dpl_entry", "twice", "far", "near"}
    assert all(symbol.binding != elf.LOCAL for symbol in found.symbols.known.values())
