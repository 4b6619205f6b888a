"""Files of the cache that hold object code and a header.

length of the header | header | code

The header is numbers, texts, lists and dictionaries, written by `marshal`: JSON's reader is regular expressions, whose
import and compilation take a tenth of the time in which a program from the cache starts.

This module imports little, as programs from the cache need it.
"""

from __future__ import annotations

import marshal
import os
from functools import cache

import dpl
from dpl.system import entries

from dplc.machine.llvm import processor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

COMPILER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
FORMAT = 4  # of `marshal`, for all versions of Python
LANGUAGE = os.path.dirname(os.path.realpath(dpl.__file__))
SOURCES = (".py", ".dp", ".lark", ".rt")


def read(path: str | Path) -> tuple[Any, bytes] | None:
    """The header and the code."""
    data = entries.read(path)
    if data is None:
        return None
    return parts(data)


def parts(data: bytes) -> tuple[Any, bytes]:
    """The header and the code of a file's contents."""
    end = 8 + int.from_bytes(data[:8], "little")
    return marshal.loads(data[8:end]), data[end:]


def write(path: str | Path, header: Any, code: bytes) -> None:
    """Writes a file of the cache, whole or not at all."""
    entries.write(path, contents(header, code))


def contents(header: Any, code: bytes) -> bytes:
    """The bytes of a file: the length of the header, the header (marshalled), the code."""
    text = marshal.dumps(header, FORMAT)
    return len(text).to_bytes(8, "little") + text + code


def name(*parts: bytes, made_by: Sequence[str] = ()) -> str:
    """The name of the file for these parts, on this machine.  It changes with DPL itself, or, if given, only with the
    folders `made_by`."""
    known = (*parts, processor.describe(), version(tuple(made_by) or own_folders()))
    return entries.checksum(b"".join(len(part).to_bytes(8, "little") + part for part in known)).hex()


def own_folders() -> tuple[str, ...]:
    """The compiler, the language, and what is read by them, which a checkout has beside the language."""
    beside = os.path.dirname(os.path.dirname(LANGUAGE))
    return COMPILER, LANGUAGE, *(os.path.join(beside, data) for data in ("stdlib", "grammar"))


@cache
def version(folders: tuple[str, ...]) -> bytes:
    """A fingerprint of the source files in these folders, as this process has found them: their names, sizes and
    times."""
    return "\n".join(sorted(mark for folder in folders for mark in marks(folder))).encode()


def marks(folder: str) -> Iterator[str]:
    """A line for each source file inside; a folder that is missing has none."""
    try:
        found = list(os.scandir(folder))
    except OSError:
        return
    for entry in found:
        if entry.name.endswith(SOURCES):
            status = entry.stat()
            yield f"{entry.name} {status.st_size} {status.st_mtime_ns}"
        elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
            yield from marks(entry.path)
