"""Keeps the Python bytecode of imported modules in DPL's own cache.

    bytecode/pack-KEY    of many modules, in one file; `pack-KEY-index` says where each of them is, and who adds some
                         holds `pack-KEY-lock`
    bytecode/PATH        of one module, as Python would write it beside the source

A compilation imports hundreds of modules.  To look for each of them in folders, and to read its own file, takes a third
of the time of their import, so they are packed.

If Python must not write bytecode beside its sources, as in containers, it compiles all sources at every start that were
not compiled when they were installed, which takes longer than compiling a small program.  So those that are not in the
pack are kept one by one, too.  An entry is checked like all others, and made again if damaged.
"""

from __future__ import annotations

import atexit
import marshal
import mmap
import os
import sys
from contextlib import suppress
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.util import MAGIC_NUMBER

from dpl.system import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import BufferedWriter
    from types import CodeType, ModuleType
    from typing import Any

    Stamp = tuple[int, int]  # of a source: when it was changed, and its size
    Place = tuple[str, Stamp, int, int, bytes]  # the source, its stamp, where its bytecode begins and ends, a checksum

MANY = 8  # modules that a run has found elsewhere, for which it writes to the pack
LARGEST = 1 << 26  # bytes of a pack, with modules that have changed since; then it is begun again


class Pack:
    """The bytecode of many modules in one file of the cache.  Python asks it first for a module."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.loader = Keeper if sys.dont_write_bytecode else Loader
        self.others: dict[str, tuple[str, Stamp, CodeType]] = {}  # modules that were found elsewhere
        self.read()

    def read(self) -> None:
        index = entries.read(f"{self.path}-index")
        self.places: dict[str, Place] = marshal.loads(index) if index else {}
        self.content = mapped(self.path) if index else b""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        place = self.places.get(name)
        if place is None or stamp(place[0]) != place[1]:
            return None
        return packed(name, place[0], self, place[1])

    def code(self, name: str, source: str, when: Stamp | None) -> CodeType | None:
        """The bytecode of a module, if it is there, whole, and that of the source with this stamp."""
        data = self.data(name, source, when)
        return None if data is None else marshal.loads(data)

    def data(self, name: str, source: str, when: Stamp | None) -> bytes | None:
        found, made_of, start, end, control = self.places.get(name, ("", None, 0, 0, b""))
        if (found, made_of) != (source, when):
            return None
        data = self.content[start:end]
        return data if entries.control(data) == control else None

    def save(self) -> None:
        """Adds the modules that were found elsewhere, if there are many.  Of several runs that end at once one does so;
        the others, and those that end later, have found the same."""
        if len(self.others) < MANY or not entries.usable(entries.folder()):
            return
        import fcntl

        with suppress(OSError), appending(f"{self.path}-lock") as lock:  # the disk is full, or another run saves
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.read()
            missing = {name: one for name, one in self.others.items() if self.data(name, *one[:2]) is None}
            if len(missing) >= MANY:
                self.add(missing)

    def add(self, missing: dict[str, tuple[str, Stamp, CodeType]]) -> None:
        parts = [marshal.dumps(code) for _, _, code in missing.values()]
        if len(self.content) > LARGEST:
            os.unlink(self.path)
        with appending(self.path) as file:
            file.write(b"".join(parts))
            file.flush()
            end = file.tell() - sum(map(len, parts))
        for (name, (source, when, _)), data in zip(missing.items(), parts, strict=True):
            self.places[name] = source, when, end, end + len(data), entries.control(data)
            end += len(data)
        entries.write(f"{self.path}-index", marshal.dumps(self.places))


class Loader(SourceFileLoader):
    """Python's own loader, except that it asks the pack first, and notes for it what was not there."""

    pack: Pack
    when: Stamp | None = None  # the stamp of the source, if that is known

    def get_code(self, fullname: str) -> CodeType | None:
        when = self.when or stamp(self.path)
        if (packed := self.pack.code(fullname, self.path, when)) is not None:
            return packed
        try:
            code = super().get_code(fullname)
        except EOFError:  # the disk was full when Python wrote its file
            code = self.source_to_code(super().get_data(self.path), self.path)
        if when and code:
            self.pack.others[fullname] = self.path, when, code
        return code


class Keeper(Loader):
    """The same where Python must not write bytecode beside the sources: it is written to the cache, and read there."""

    def get_data(self, path: str) -> bytes:
        kept = entries.read(entry(path)) if path.endswith(tuple(BYTECODE_SUFFIXES)) else None
        return super().get_data(path) if kept is None else kept

    def set_data(self, path: str, data: Any, *, _mode: int = 0) -> None:
        entries.write(entry(path), bytes(data))


def packed(name: str, source: str, pack: Pack, when: Stamp) -> ModuleSpec:
    """As `spec_from_file_location`, which also finds out where Python would keep the bytecode: for hundreds of modules,
    that takes as long as to check a small program."""
    loader = pack.loader(name, source)
    loader.when = when
    spec = ModuleSpec(name, loader, origin=source)
    spec.has_location = True
    spec.cached = pack.path
    folder, _, file = source.rpartition(os.sep)
    if file == "__init__.py":
        spec.submodule_search_locations = [folder]
    return spec


def mapped(path: str) -> mmap.mmap | bytes:
    """The bytes of a file, of which only those are read that are used; none if it is missing or empty."""
    try:
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return b""


def appending(path: str) -> BufferedWriter:
    """A file at whose end is written, where other processes may write, too."""
    os.makedirs(os.path.dirname(path), entries.OURS, exist_ok=True)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, entries.OURS & 0o666), "wb")


def stamp(source: str) -> Stamp | None:
    """The time and the length of a file, by which it is known to be the same; None if it cannot be had."""
    try:
        status = os.stat(source)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def entry(path: str) -> str:
    return os.path.join(entries.folder(), "bytecode", path.lstrip(os.sep))


def key() -> str:
    """Which modules an import finds, and what their bytecode depends on besides the sources."""
    said = f"{MAGIC_NUMBER!r} {sys.flags.optimize} {sys.path}"
    return entries.checksum(said.encode())[:8].hex()


def keep() -> None:
    """From now on Python writes and finds bytecode in the cache: one pack for all modules that a run imports."""
    Loader.pack = pack = Pack(entry(f"pack-{key()}"))
    loaders = (
        (ExtensionFileLoader, EXTENSION_SUFFIXES), (pack.loader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )  # fmt: skip
    sys.path_hooks.insert(0, FileFinder.path_hook(*loaders))
    sys.path_importer_cache.clear()
    sys.dont_write_bytecode = False
    sys.meta_path.insert(0, pack)
    atexit.register(pack.save)
