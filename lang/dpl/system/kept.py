"""The cache of earlier results on disk.

    kept.read(kept.place("objects", name))     the bytes of an entry, or None
    kept.once(find, make)                      the result of one process, which finds or makes it while others wait

An entry is    magic | SHA-256 of the rest | the rest    and is written atomically.  A truncated or damaged entry counts
as missing and is made again.

Some entries are code, or pickles, which can run code when they are read.  The checksum does not prove their origin, so
file permissions must.  A file is read only if the opened file belongs to this user (or to the superuser, who could
change DPL itself) and no other user may write to it.  Its folder must satisfy the same, so that no other user can
replace the file by another one of this user's.  New files are accessible to this user only.  A folder that others may
write to is not used at all, and a warning says so once.
"""

from __future__ import annotations

import os
import pickle
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")

MAGIC = b"DPL kept 1\n"
PARTS = ("objects", "modules", "imports", "bytecode", "stdlib-*", "grammar-*", "history", "lock")
PATIENCE = 120  # seconds to wait for another process that makes the same entry
OURS = 0o700


def cache_dir() -> Path:
    """The folder of the cache; it may be missing or not writable."""
    if chosen := os.environ.get("DPL_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "dpl"


def place(*names: str) -> Path:
    """The path of an entry; the folder may be missing or not writable."""
    return cache_dir().joinpath(*names)


def read(path: Path) -> bytes | None:
    """The contents of an entry, or None if it is missing, damaged or not trustworthy."""
    if not usable(cache_dir()):
        return None
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read() if stat.S_ISREG(status.st_mode) and is_ours(status) else b""
    except OSError:
        return None
    start = len(MAGIC) + 32
    if data[: len(MAGIC)] != MAGIC or sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        return None
    return data[start:]


def unpickled(path: Path) -> Any:
    """The value of a pickled entry, or None if it cannot be read."""
    data = read(path)
    try:
        return None if data is None else pickle.loads(data)
    except Exception:  # another version of Python wrote it
        return None


def write(path: Path, data: bytes) -> None:
    """Write an entry atomically.  Does nothing if the folder cannot be written."""
    if not usable(cache_dir()):
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(mode=OURS, parents=True, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OURS & 0o666), "wb") as file:
            file.write(MAGIC + sha256(data).digest() + data)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@cache
def usable(folder: Path) -> bool:
    """True if only this user (or the superuser) can write to a folder, which is made if missing.  Warns if the folder
    belongs to another user or others may write to it."""
    try:
        folder.mkdir(mode=OURS, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:  # the folder cannot be made
        return False
    if not is_ours(status):
        reason = "other users may write to it" if status.st_mode & 0o022 else "it belongs to another user"
        sys.stderr.write(f"warning: the cache {folder} is not used: {reason}\n")
        return False
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        with suppress(OSError):
            folder.chmod(OURS)
    return True


def is_ours(status: os.stat_result) -> bool:
    """True if only this user or the superuser could have written the file."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def once(find: Callable[[], Result | None], make: Callable[[], Result]) -> Result:
    """The result of `find` from the cache, or of `make`, which also stores it.  If several processes find nothing, only
    one makes it."""
    found = find()
    if found is None:
        with alone():
            found = find()  # another process may have made it meanwhile
            return make() if found is None else found
    return found


class Within(threading.local):
    """Thread-local state: `alone` is true while the thread is inside `alone()`."""

    alone = False


within = Within()


@contextmanager
def alone() -> Iterator[None]:
    """Hold a lock, so that only one process is inside at a time.  A process that waits longer than PATIENCE continues
    without it.  The system frees the lock when the process ends."""
    file = None
    outermost, within.alone = not within.alone, True
    try:
        if outermost and usable(cache_dir()):
            with suppress(OSError):
                file = os.open(place("lock"), os.O_RDWR | os.O_CREAT, OURS & 0o666)
                wait_for(file)
        yield
    finally:
        within.alone = not outermost
        if file is not None:
            os.close(file)


def wait_for(file: int) -> None:
    import fcntl

    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)


waiting: dict[Path, int] = {}  # how many entries each folder takes before it is looked through again


def prune(folder: Path, most: int, every: int = 64) -> None:
    """Remove the oldest entries until the others take no more than `most` bytes.  A process that writes many looks at
    the first one and then at one of `every`."""
    left = waiting.get(folder, 0)
    waiting[folder] = (left or every) - 1
    if left:
        return
    entries = []
    for file in files(folder):
        with suppress(OSError):  # another process removed it
            status = file.stat()
            entries.append((status.st_mtime, status.st_size, file))
    total = sum(size for _, size, _ in entries)
    for _, size, file in sorted(entries, key=lambda entry: entry[0]):
        if total <= most:
            break
        with suppress(OSError):
            file.unlink(missing_ok=True)
        total -= size


def files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def size() -> int:
    """The number of bytes of all entries."""
    found = 0
    for folder, _, names in os.walk(cache_dir()):
        for name in names:
            with suppress(OSError):
                found += os.lstat(os.path.join(folder, name)).st_size
    return found


def clean() -> None:
    """Remove all entries; other files in the folder stay."""
    import shutil

    for pattern in PARTS:
        for path in cache_dir().glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
    with suppress(OSError):
        cache_dir().rmdir()
