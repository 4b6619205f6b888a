"""Tiered compilation: a program starts as code that is quick to make, and its hot functions become optimised code.

    dpl run model.dp      the quick version is compiled, kept in the cache, and starts
       now and then       if functions have run for long (`hot.py`): a process optimises them in the program's text, and
                          keeps the better version in the cache
       when that ends     the functions of the better version replace those of the running program

All versions but one that is optimised as a whole call each function that can be replaced through a cell
(`object/link.py`), and their long loops look after each step whether they are replaced (`emit/bodies/resume.py`).  A
program that ends sooner does not wait: the process goes on by itself, and the next run starts with the better version.

This module imports little: a program from the cache should start quickly.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import time
from contextlib import ExitStack, suppress
from signal import SIGKILL

from dpl.system import entries

from dplc.machine.llvm.sampler import HANDLER
from dplc.machine.object import cache_file
from dplc.machine.run import background, perf_map
from dplc.machine.run.cache import packed, place_of, unpacked
from dplc.machine.run.execute import ENTRY, FLUSH
from dplc.machine.run.program import LoadedImage, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from dplc.machine.run.hot import Profile

REPLACED = "dpl_replaced"  # a byte of a version: 1 if functions were replaced
OPTIMISER = "dplc.machine.run.optimise"
TIMES = ".times"  # the ending of the file with the times of functions
INTERVAL = 0.004  # seconds of processor time between two samples


class Upgrade:
    """The better versions of a running program.  `look` is called now and then while the program runs."""

    def __init__(self, program: Program, loaded: LoadedImage, path: str | None) -> None:
        """`path` is the program's file if better versions go into the cache.  If not, the optimiser ends with the
        program."""
        self.program = program
        self.loaded = loaded
        self.place = place_of(path) if path else None
        self.folder = ""
        self.process = 0
        self.done = False
        self.profile: Profile | None = None
        self.clock = time.process_time()
        self.sampling = ExitStack()
        if HANDLER in loaded.image.exports:
            from dplc.machine.run.ticks import ticking

            with suppress(OSError):
                self.sampling.enter_context(ticking(loaded.base + loaded.image.exports[HANDLER], INTERVAL))

    def look(self) -> None:
        """Takes what an optimiser has made, or starts one if functions are hot."""
        if self.done:
            return
        if self.process:
            found, status = os.waitpid(self.process, os.WNOHANG)
            if found:
                self.process = 0
                self.improve(status)
        elif names := self.hot():
            self.optimise(names)

    def hot(self) -> list[str]:
        """The functions that repay optimising now."""
        from dplc.machine.run.hot import Profile, everything, repaying

        if HANDLER not in self.loaded.image.exports:
            return everything(self.program, time.process_time() - self.clock)
        if self.profile is None:
            self.profile = Profile(self.loaded, self.clock)
            self.profile.add(self.program.code, self.loaded.start)
            self.profile.seconds.update(earlier(self.place))
        self.profile.read()
        return repaying(self.program, self.profile.seconds)

    def optimise(self, names: Iterable[str]) -> None:
        """Starts a process that optimises these functions."""
        self.process = background.spawn(["-m", OPTIMISER, self.version(), *names])
        self.done = not self.process

    def improve(self, status: int) -> None:
        """The optimiser has ended."""
        program = read(self.version()) if status == 0 else None
        if program is None or not set(program.hot) - set(self.program.hot):
            self.done = True
            return
        other = replace(self.loaded, program)
        self.program = program
        perf_map.note(program.code, ENTRY, other.start)
        if self.profile:
            self.profile.add(program.code, other.start)

    def version(self) -> str:
        """The file with the present version, where the optimiser puts a better one."""
        if self.place is None or not os.path.exists(self.place):
            from tempfile import mkdtemp

            self.folder = mkdtemp(prefix="dpl-")
            self.place = os.path.join(self.folder, "program")
            write(self.place, self.program)
        return self.place

    def end(self) -> None:
        """The program has ended."""
        self.sampling.close()
        if self.profile and self.place and not self.folder:
            self.profile.read()
            keep(self.place, self.profile.seconds)
        if not self.folder:
            return
        if self.process:
            os.kill(self.process, SIGKILL)
            os.waitpid(self.process, 0)
        from shutil import rmtree

        rmtree(self.folder, ignore_errors=True)


def earlier(place: str | None) -> dict[str, float]:
    """The seconds that functions took in earlier runs."""
    data = entries.read(place + TIMES) if place else None
    return marshal.loads(data) if data else {}


def keep(place: str, seconds: dict[str, float]) -> None:
    with suppress(OSError):  # a read-only cache
        entries.write(place + TIMES, marshal.dumps(seconds, cache_file.FORMAT))


def read(place: str) -> Program | None:
    """The program in this file of the cache, if it is there."""
    entry = cache_file.read(place)
    return unpacked(*entry) if entry else None


def write(place: str, program: Program) -> None:
    from pathlib import Path

    header, parts = packed(program)
    cache_file.write(Path(place), {"files": [], **header}, parts)


def replace(loaded: LoadedImage, program: Program) -> LoadedImage:
    """Put the functions of a better version in the places of those of a program, which may be running.  Returns the
    code of the better version in memory."""
    from dplc.machine.object.link import link_replaceable

    known = loaded.image.exports
    image = link_replaceable([program.code], [ENTRY, FLUSH])
    other = LoadedImage(image, lambda name: loaded.base + known[name] if name in known else 0)
    for before in (loaded, *(version for _, version in loaded.versions)):
        for name, cell in before.image.cells.items():
            if name.startswith("dpl "):
                word(before.base + cell).value = other.base + image.exports[name]
        ctypes.c_int8.from_address(before.base + before.image.exports[REPLACED]).value = 1
    loaded.versions.append((program.code, other))
    return other


def word(address: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address)
