"""The host for an operating system: a cache on disk, the memory that the system grants, and C functions.

Modules that only some programs need are imported on first use, so that a compiled program starts without them.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from dpl.digest import blake2b
from dpl.host import Cache, Host, Ranks


class System(Host):
    @property
    def cache(self) -> Cache:
        from dpl.system import kept

        return kept

    def shipped(self, name: str, sources: Iterable[Path], *more: str) -> bytes | None:
        from dpl.system import shipped

        return shipped.find(name, sources, *more)

    def kind(self, path: Path) -> str:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return "file"
        if stat.S_ISDIR(mode):
            return "folder"
        if stat.S_ISFIFO(mode):
            return "pipe"
        if stat.S_ISSOCK(mode):
            return "socket"
        return "terminal" if _ends(path) else "device"

    def stamp(self, paths: Iterable[str]) -> str:
        digest = blake2b(digest_size=12)
        for path in paths:
            status = os.stat(path)
            digest.update(f"{path}:{status.st_mtime_ns}:{status.st_size};".encode())
        return digest.hexdigest()

    def memory(self) -> int:
        return _granted()

    def resident(self) -> int:
        try:
            with open("/proc/self/statm", "rb") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:  # a system without /proc: only the number of frames is limited
            return 0

    def ranks(self) -> Ranks | None:
        from dpl.system.mpi import join

        return join()

    def ending(self, code: int) -> None:
        if mpi := sys.modules.get("dpl.system.mpi"):
            mpi.ending(code)

    def factorizations(self) -> Mapping[str, Callable] | None:
        from dpl.system import factorizations, lapack

        return factorizations.ROUTINES if lapack.find() else None

    def function(self, symbol: str, types: list[str]) -> Callable | None:
        from dpl.system.foreign import function

        return function(symbol, types)


@cache
def _granted() -> int:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return min(physical, int(file.read()))
    except (OSError, ValueError):  # no container, or one without a limit
        return physical


def _ends(device: Path) -> bool:
    """True if reading the device ends: it is a terminal or the null device."""
    file = os.open(device, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        return os.isatty(file) or device.samefile(os.devnull)
    finally:
        os.close(file)
