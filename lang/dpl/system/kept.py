"""The cache of earlier results on disk.

    kept.read(kept.place("objects", name))     the bytes of an entry, or None
    kept.once(find, make)                      the result of one process, which finds or makes it while others wait

An entry is    magic | CRC-32 of the rest | the rest    and is written atomically.  A truncated or damaged entry counts
as missing and is made again.

Some entries are code, or pickles, which can run code when they are read.  The checksum does not prove their origin, so
file permissions must.  A file is read only if the opened file belongs to this user (or to the superuser, who could
change DPL itself) and no other user may write to it.  Its folder must satisfy the same, so that no other user can
replace the file by another one of this user's.  New files are accessible to this user only.  A folder that others may
write to is not used at all, and a warning says so once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from dpl import pickled
from dpl.system import entries
from dpl.system.entries import OURS, read, usable
from dpl.system.entries import mapped as mapped
from dpl.system.entries import write as write

Result = TypeVar("Result")

PARTS = ("objects", "modules", "imports", "bytecode", "stdlib-*", "grammar-*", "history", "lock*")
PATIENCE = 120  # seconds to wait for another process that makes the same entry


def cache_dir() -> Path:
    """The folder of the cache; it may be missing or not writable."""
    return Path(entries.folder())


def place(*names: str) -> Path:
    """The path of an entry; the folder may be missing or not writable."""
    return cache_dir().joinpath(*names)


def unpickled(path: Path) -> Any:
    """The value of a pickled entry, or None if it cannot be read."""
    data = read(path)
    try:
        return None if data is None else pickled.loads(data)
    except Exception:  # another version of Python wrote it
        return None


def once(find: Callable[[], Result | None], make: Callable[[], Result], what: str = "", lock: str = "lock") -> Result:
    """The result of `find` from the cache, or of `make`, which also stores it.  If several processes find nothing, only
    one makes it.  A terminal shows meanwhile `what` is being done.  Entries with different locks can be
    made at the same time."""
    found = find()
    if found is None:
        with shown(what), alone(lock):
            found = find()  # another process may have made it meanwhile
            if found is None:
                return make()
    return found


@contextmanager
def shown(what: str) -> Generator[None]:
    """Show on a terminal what takes a second or more: here, or in a process for which this one waits."""
    if not what or not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(f"{what}, once ...")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class Within(threading.local):
    """Thread-local state: `alone` is true while the thread is inside `alone()`."""

    alone = False


within = Within()


@contextmanager
def alone(lock: str = "lock") -> Generator[None]:
    """Hold a lock, so that only one process is inside at a time.  A process that waits longer than PATIENCE continues
    without it.  The system frees the lock when the process ends."""
    file = None
    outermost, within.alone = not within.alone, True
    try:
        if outermost and usable(entries.folder()):
            with suppress(OSError):
                file = os.open(place(lock), os.O_RDWR | os.O_CREAT, OURS & 0o666)
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
