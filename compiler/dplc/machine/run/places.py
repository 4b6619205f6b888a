"""The places of failures in a quick version: it is made without debug information, and again when it has failed."""

from __future__ import annotations

import zlib

from dplc.machine.llvm.versions import quick
from dplc.machine.object import elf
from dplc.machine.object.assemble import assemble
from dplc.machine.runtime import shared


def with_places(code: bytes, text: bytes) -> bytes:
    """The object code of the quick version of a compressed text, with debug information.  It has the instructions of
    `code`, which has none.  Should they differ, places would be wrong: then it is `code`, and functions have none."""
    made = assemble(quick(zlib.decompress(text).decode("utf-8", "surrogatepass"), shared.shared().texts), most=0)
    return made if instructions(made) == instructions(code) else code


def instructions(code: bytes) -> bytes:
    read = elf.read(code)
    return read.sections[read.section(".text")].contents
