"""Entries of the cache on disk (`kept.py`): read if they can be trusted, and written.

This module imports little: a program from the cache should start quickly.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import zlib
from contextlib import suppress
from functools import cache

from dpl.digest import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO
    from typing import TypeVar

    Buffer = TypeVar("Buffer", bytes, memoryview)

MAGIC = b"DPL kept 3\n"
START = len(MAGIC) + 4  # the bytes before the content
OURS = 0o700


def folder() -> str:
    """The folder of the cache; it may be missing or not writable."""
    if chosen := os.environ.get("DPL_CACHE"):
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "dpl")


def read(path: str | os.PathLike[str]) -> bytes | None:
    """The contents of an entry, or None if it is missing, damaged or not trustworthy."""
    return _found(path, lambda file: (file.read(START), file.read()))


def mapped(path: str | os.PathLike[str]) -> memoryview | None:
    """As `read`, but the contents are mapped: a large entry of which little is used is not copied."""

    def parts(file: FileIO) -> tuple[memoryview, memoryview]:
        from mmap import ACCESS_READ, mmap

        whole = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
        return whole[:START], whole[START:]

    return _found(path, parts)


def _found(path: str | os.PathLike[str], parts: Callable[[FileIO], tuple[Buffer, Buffer]]) -> Buffer | None:
    if not usable(folder()):
        return None
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not (stat.S_ISREG(status.st_mode) and is_ours(status)):
                return None
            start, content = parts(file)
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None
    return content if start == MAGIC + control(content) else None


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write an entry atomically.  Does nothing if the folder cannot be written."""
    if not usable(folder()):
        return
    temporary = f"{os.fspath(path)}.{os.getpid()}.{threading.get_ident()}"
    try:
        os.makedirs(os.path.dirname(temporary), OURS, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OURS & 0o666), "wb") as file:
            file.write(sealed(data))
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)


def sealed(content: bytes) -> bytes:
    """The bytes of an entry with this content."""
    return MAGIC + control(content) + content


def checked(data: bytes) -> bytes | None:
    """The content of an entry; None if it is damaged."""
    content = data[START:]
    return content if data[:START] == MAGIC + control(content) else None


def control(content: bytes | memoryview) -> bytes:
    """What shows that an entry is damaged.  A run reads megabytes; `checksum` would take a fortieth of a short one."""
    return zlib.crc32(content).to_bytes(4, "little")


def checksum(data: bytes) -> bytes:
    """A hash, by which entries are named."""
    return blake2b(data, digest_size=32).digest()


@cache
def usable(folder: str) -> bool:
    """True if only this user (or the superuser) can write to a folder, which is made if missing.  Warns if the folder
    belongs to another user or others may write to it."""
    try:
        os.makedirs(folder, OURS, exist_ok=True)
        status = os.stat(folder)
    except OSError:  # the folder cannot be made
        return False
    if not is_ours(status):
        reason = "other users may write to it" if status.st_mode & 0o022 else "it belongs to another user"
        sys.stderr.write(f"warning: the cache {folder} is not used: {reason}\n")
        return False
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        with suppress(OSError):
            os.chmod(folder, OURS)
    return True


def is_ours(status: os.stat_result) -> bool:
    """True if only this user or the superuser could have written the file."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022
