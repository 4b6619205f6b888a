"""Tiered compilation: a program starts as code that is quick to make, and goes on as optimised code.

    dpl run model.dp     the quick version is compiled, kept in the cache, and starts
       DELAY later       if it is still running: a process optimises the text and keeps the result in the cache
       when that ends    the optimised functions replace those of the running program

The quick version calls each function that can be replaced through a cell (`object/link.py`), and its long loops look
after each step whether they are replaced (`emit/resume.py`).  A program that ends sooner does not wait: the process
goes on by itself, and the next run starts with the optimised version.

This module imports little: a program from the cache should start quickly.
"""

from __future__ import annotations

import ctypes
import os
import sys
from signal import SIGKILL

from dplc.machine.object import cache_file
from dplc.machine.run.cache import packed, place_of, unpacked
from dplc.machine.run.execute import ENTRY, FLUSH
from dplc.machine.run.program import LoadedImage, Program

REPLACED = "dpl_replaced"  # a byte of the quick version: 1 if functions were replaced
OPTIMISER = "dplc.machine.run.optimise"


class Upgrade:
    """The optimised version of a running program.  `look` is called now and then while the program runs."""

    def __init__(self, program: Program, loaded: LoadedImage, path: str | None) -> None:
        """`path` is the program's file if the optimised version goes into the cache.  If not, the optimiser ends with
        the program."""
        self.program = program
        self.loaded = loaded
        self.place = place_of(path) if path else None
        self.folder = ""
        self.process = 0
        self.done = False

    def look(self) -> None:
        if self.done:
            return
        if not self.process:
            self.process = spawn(self.quick_version())
            self.done = not self.process
            return
        found, status = os.waitpid(self.process, os.WNOHANG)
        if found:
            self.process, self.done = 0, True
            if status == 0 and (program := read(self.quick_version())) is not None and not program.text:
                replace(self.loaded, program)

    def quick_version(self) -> str:
        """The file with the quick version, where the optimiser puts the other one."""
        if self.place is None or not os.path.exists(self.place):
            from tempfile import mkdtemp

            self.folder = mkdtemp(prefix="dpl-")
            self.place = os.path.join(self.folder, "program")
            write(self.place, self.program)
        return self.place

    def end(self) -> None:
        """The program has ended."""
        if not self.folder:
            return
        if self.process:
            os.kill(self.process, SIGKILL)
            os.waitpid(self.process, 0)
        from shutil import rmtree

        rmtree(self.folder, ignore_errors=True)


def spawn(place: str) -> int:
    """Start the optimiser on a file; returns the number of the process, or 0.  It has no terminal, and signals for the
    program do not reach it."""
    null = [(os.POSIX_SPAWN_OPEN, i, os.devnull, os.O_RDWR, 0) for i in range(3)]
    words = [sys.executable, "-P", "-m", OPTIMISER, place]
    try:
        return os.posix_spawn(sys.executable, words, os.environ, file_actions=null, setsid=True)
    except OSError:
        return 0


def read(place: str) -> Program | None:
    import json

    entry = cache_file.read(place)
    return unpacked(json.loads(entry[0]), entry[1]) if entry else None


def write(place: str, program: Program) -> None:
    from pathlib import Path

    header, parts = packed(program)
    cache_file.write(Path(place), {"files": [], **header}, parts)


def replace(loaded: LoadedImage, program: Program) -> None:
    """Put the functions of the optimised program in the places of those of the quick one, which may be running."""
    from dplc.machine.object.link import link

    known = loaded.image.exports
    names = [name for name in loaded.image.cells if name.startswith("dpl ")]
    image = link([program.code], [ENTRY, FLUSH, *names])
    other = LoadedImage(image, lambda name: loaded.base + known[name] if name in known else 0)
    for name in names:
        word(loaded.base + loaded.image.cells[name]).value = other.base + image.exports[name]
    ctypes.c_int8.from_address(loaded.base + known[REPLACED]).value = 1
    loaded.versions.append((program.code, other))


def word(address: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address)
