"""The interface between the language and its host: files, the clock, memory, the cache, C libraries.

The rest of `dpl` only computes.  `Host` uses nothing but plain Python, so it also works in a browser: it caches nothing
and has no foreign functions.  `dpl.system` implements the interface for an operating system; the compiler's package
selects it (`dpl.HOST`).  Callers write `host.current.clock()` and do not keep `current`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

import dpl

Result = TypeVar("Result")


class Cache(Protocol):
    """A cache of results of earlier runs (`system/kept.py`)."""

    def place(self, *names: str) -> Path:
        """The path of an entry."""
        ...

    def read(self, path: Path) -> bytes | None:
        """The bytes of an entry; None if there is none that can be trusted."""
        ...

    def mapped(self, path: Path) -> memoryview | None:
        """The same, mapped into memory."""
        ...

    def unpickled(self, path: Path) -> Any:
        """The object in an entry; None if there is none."""
        ...

    def write(self, path: Path, data: bytes) -> None:
        """Writes an entry, whole or not at all."""
        ...

    def once(self, find: Callable[[], Result | None], make: Callable[[], Result], what: str = "") -> Result:
        """What is found, or else made, by one process while others that want it wait."""
        ...

    def prune(self, folder: Path, most: int) -> None:
        """Removes the oldest entries of a folder until the others take no more than `most` bytes."""
        ...


class NoCache:
    """A cache that keeps nothing."""

    def place(self, *names: str) -> Path:
        return Path(*names)

    def read(self, path: Path) -> None: ...

    def mapped(self, path: Path) -> None: ...

    def unpickled(self, path: Path) -> None: ...

    def write(self, path: Path, data: bytes) -> None: ...

    def once(self, find: Callable[[], Result | None], make: Callable[[], Result], what: str = "") -> Result:
        return make()

    def prune(self, folder: Path, most: int) -> None: ...


class Ranks(Protocol):
    """The processes of MPI that run a program together; data are 64-bit words (`system/mpi.py`)."""

    rank: int
    size: int
    calls: int  # collective operations so far

    def reduce(self, words: list[int], what: str) -> list[int]:
        """What an operation makes of the words of all ranks, one by one."""
        ...

    def broadcast(self, words: list[int], root: int) -> list[int]:
        """The words of one rank."""
        ...

    def gather(self, words: list[int]) -> list[int]:
        """The words of all ranks, in the order of ranks."""
        ...

    def rotate(self, words: list[int], by: int) -> list[int]:
        """The words of the rank that is so many ranks before this one, around a ring."""
        ...

    def send(self, words: list[int], to: int) -> None:
        """Sends words to a rank."""
        ...

    def receive(self, count: int, source: int) -> list[int]:
        """So many words that a rank has sent."""
        ...


class Host:
    """A host that uses nothing but plain Python."""

    @property
    def cache(self) -> Cache:
        return NoCache()

    def shipped(self, name: str, sources: Iterable[Path], *more: str) -> bytes | None:
        """What was made from these files and texts when DPL was installed, if it was."""
        return None

    # ---- files

    def read_bytes(self, path: Path) -> bytes:
        return path.read_bytes()

    def read_byte(self, file: int) -> bytes:
        """The next byte of an open file; none at its end.  Raises OSError."""
        return os.read(file, 1)

    def write_bytes(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def names(self, folder: Path) -> list[str]:
        """The names of the files in a folder.  Raises OSError."""
        return [path.name for path in folder.iterdir()]

    def real(self, path: Path) -> str:
        """The canonical path of a file."""
        return os.path.realpath(path)

    def kind(self, path: Path) -> str:
        """`file`, `folder`, `pipe`, `socket`, `terminal`, or `device`.  Raises OSError."""
        if path.is_dir():
            return "folder"
        path.stat()
        return "file"

    def stamp(self, paths: Iterable[str]) -> str:
        """A text that changes whenever one of the files changes; only a cache needs it."""
        return ""

    # ---- the process

    def clock(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def environment(self, name: str) -> str | None:
        return os.environ.get(name)

    def raw(self, text: str) -> bytes:
        """The original bytes of an argument or environment variable."""
        return os.fsencode(text)

    def memory(self) -> int:
        """The bytes of memory that a program may fill."""
        return 1 << 62

    def resident(self) -> int:
        """The bytes of memory in use; 0 if unknown."""
        return 0

    # ---- other processes

    def ranks(self) -> Ranks | None:
        """The processes of MPI that run this program together; None if it runs alone.  Raises OSError."""
        return None

    def ending(self, code: int) -> None:
        """The program has stopped with this exit code, before its last item was done."""

    # ---- libraries in C

    def factorizations(self) -> Mapping[str, Callable] | None:
        """The primitives that LAPACK computes; None if it is missing, and the library's own algorithms are used."""
        return None

    def function(self, symbol: str, types: list[str]) -> Callable | None:
        """A C function of scalars, or None if it is not found.  `types` are its parameter types and its result type,
        which is "" if there is none."""
        return None


current: Host


def __getattr__(name: str) -> Host:
    """`current`, made at its first use: programs from the cache never ask for it."""
    global current
    if name != "current":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, kind = dpl.HOST.partition(":")
    current = getattr(import_module(module), kind)()
    return current
