"""Compiled programs on disk, so that a program that ran before starts at once.

A cache file (`cache_file.py`) is named by a hash of the program's path and text, of DPL itself and of this machine.
Its header lists the files that the program was made of, each with the hash of its text.  If one of these files has
changed, it is ignored.  After the header: the parts of the program.  The least recently used are deleted when there are
too many.

This module imports little: a program from the cache should start quickly.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

from dpl.system import entries

from dplc.machine.object import cache_file
from dplc.machine.object.image import Image
from dplc.machine.run.program import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dpl.source import Source

DRIVER = "libcuda.so.1"  # of NVIDIA's GPUs
MOST = 512 << 20  # bytes of all files
NOTE = ".ran"  # the ending of the name of an empty file: the program has run, but is not compiled


def find(path: str | Path) -> Program | None:
    """The program in a file, if it has run before and none of its files has changed."""
    if not os.path.isfile(path) or (text := contents(path)) is None:  # a pipe can be read only once
        return None
    place = _place(path, text)
    if (entry := cache_file.read(place)) is None:
        return None
    header, parts = entry
    if not unchanged(header["files"]):
        return None
    with suppress(OSError):  # a read-only cache is used all the same
        os.utime(place)
    return unpacked(header, parts)


def unchanged(files: Sequence[Sequence[str]]) -> bool:
    """True if files still have the texts from which `digests` were computed."""
    return all(digest(file) == known for file, known in files)


def digests(sources: Sequence[Source]) -> list[list[str]]:
    """The path of each source with the hash of its text."""
    return [[str(s.path.resolve()), entries.checksum(s.text.encode()).hex()] for s in sources if s.path]


def store(path: str | Path, sources: Sequence[Source], program: Program) -> None:
    """Keeps the program at `path`, which was made of these sources."""
    from pathlib import Path

    from dpl.system import kept

    if (text := contents(path)) is None:
        return
    header, parts = packed(program)
    place = Path(_place(path, text))
    cache_file.write(place, {"files": digests(sources), **header}, parts)
    kept.prune(place.parent, MOST)


def packed(program: Program) -> tuple[dict, bytes]:
    """A header, and the parts one after the other."""
    image = program.image
    parts = image.contents, image.words, program.sites.encode(), program.warnings, program.code, program.text
    header = {
        "ends": [image.code, image.constants, image.size], "imports": image.imports, "exports": image.exports,
        "cells": image.cells, "lines": program.lines, "hot": program.hot,
        "reads_arguments": program.reads_arguments, "parts": [len(part) for part in parts],
    }  # fmt: skip
    return header, b"".join(parts)


def unpacked(header: dict, data: bytes) -> Program:
    """The program in a file of the cache."""
    parts, start = [], 0
    for size in header["parts"]:
        parts.append(data[start : start + size])
        start += size
    contents, words, sites, warnings, code, text = parts
    code_end, constants_end, end = header["ends"]
    imports, exports, cells = header["imports"], header["exports"], header["cells"]
    image = Image(contents, code_end, constants_end, end, words, imports, exports, cells)
    return Program(image, code, sites.decode(), warnings, text, header["lines"], header["hot"],
                   header["reads_arguments"])  # fmt: skip


def wants_device() -> bool:
    """Whether programs are compiled for a device, too: DPL_DEVICE is `gpu`, or it is `auto` and there is a driver."""
    wanted = os.environ.get("DPL_DEVICE", "")
    if wanted != "auto":
        return wanted == "gpu"
    try:
        ctypes.CDLL(os.environ.get("DPL_CUDA", DRIVER))
    except OSError:
        return False
    return True


def _place(path: str | Path, text: bytes) -> str:
    """The cache file of a program; the path counts, as it is part of the program's messages."""
    kind = b"with a device" if wants_device() else b""
    name = cache_file.name(os.fsencode(path), os.fsencode(os.path.realpath(path)), text, kind)
    return os.path.join(entries.folder(), "objects", name)


def ran_before(path: str | Path) -> bool:
    """Whether a program with this text has been noted here before; it is from now on."""
    if (place := place_of(path)) is None:
        return False
    note = place + NOTE
    try:
        os.makedirs(os.path.dirname(note), exist_ok=True)
        os.close(os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return True
    except OSError:  # a cache that cannot be written keeps no programs, either
        return False
    return False


def place_of(path: str | Path) -> str | None:
    """The cache file of the program at `path`, if that can be read."""
    text = contents(path)
    return None if text is None else _place(path, text)


def contents(path: str | Path) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def digest(path: str | Path) -> str:
    """The hash of a file's text; empty if it cannot be read."""
    text = contents(path)
    return "" if text is None else entries.checksum(text).hex()
