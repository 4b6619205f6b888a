"""Linked programs: loaded into memory and run, without LLVM.

This module imports little: a program from the cache should start quickly.
"""

from __future__ import annotations

import ctypes
import os
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, mmap

from dplc.machine.object.image import Image
from dplc.machine.run import perf_map
from dplc.machine.run.execute import BEGUN, ENTRY, LAPACK, Loaded, offer_lapack, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dplc.machine.failure.failures import Sites

MORE = ("libm.so.6", "libgcc_s.so.1")  # libraries of C that Python may not have loaded


class Program:
    """An image with what is needed when it fails: the object code of the program (it has the debug information, or
    `places.with_places` makes it) and its sites, as JSON.  `warnings` are pickled; empty if there are none.  `text` is
    the compressed text, of which some is still to be optimised, `lines` the size of each function there, and `hot`
    those that are optimised; all are empty if the whole image is.  `reads_arguments` says whether it asks for the words
    after its file."""

    __slots__ = ("code", "hot", "image", "lines", "reads_arguments", "sites", "text", "warnings")

    def __init__(self, image: Image, code: bytes, sites: str, warnings: bytes = b"", text: bytes = b"",
                 lines: Mapping[str, int] = {}, hot: Sequence[str] = (),
                 reads_arguments: bool = True) -> None:  # fmt: skip
        self.image = image
        self.code = code
        self.sites = sites
        self.warnings = warnings
        self.text = text
        self.lines = dict(lines)
        self.hot = list(hot)
        self.reads_arguments = reads_arguments


class LoadedImage(Loaded):
    """An image in memory of its own."""

    def __init__(self, image: Image, known: Callable[[str], int] = lambda name: 0) -> None:
        """`known` gives the addresses of symbols that are loaded already, 0 for others."""
        self.image = image
        self.versions: list[tuple[bytes, LoadedImage]] = []  # code and images that have replaced functions of this one
        imports = [known(name) or address(name) for name in image.imports]
        self.memory = mmap(-1, image.size, MAP_PRIVATE | MAP_ANONYMOUS)
        base = self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        image.fill(self.memory, [base, *imports])
        # Linux makes the instruction cache of AArch64 see new code when its pages become executable
        protect(base, image.code, PROT_READ | PROT_EXEC)
        protect(base + image.code, image.constants - image.code, PROT_READ)
        super().__init__(lambda name: base + image.exports[name])

    def stay(self) -> None:
        """Keeps the memory until the process has ended: the C library calls code then that asked for it."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.memory))

    def already(self, text: bytes) -> None:
        """The program will write this, which is on standard output already, first; it is not written again."""
        if text:
            self.said = ctypes.create_string_buffer(text, len(text))
            self._said()[:2] = ctypes.addressof(self.said), len(text)

    def differs(self) -> bool:
        """Whether the program has written anything else, or less."""
        _, size, again, differs, _ = self._said()
        return bool(differs) or again < size

    def lines_written(self) -> int:
        """How many lines the program has written to standard output."""
        return self._said()[4]

    def _said(self) -> ctypes.Array[ctypes.c_int64]:
        return (ctypes.c_int64 * 5).from_address(self.base + self.image.exports[BEGUN])

    def parts(self, program: Program) -> list[tuple[bytes, int]]:
        """The object codes in memory, with debug information, each with the address of its entry."""
        from dplc.machine.run.places import with_places

        code = with_places(program.code, program.text) if program.text and not program.hot else program.code
        return [(code, self.start), *((code, other.start) for code, other in self.versions)]


class Missing(Exception):
    """No library in use has this symbol."""

    def __init__(self, symbol: str) -> None:
        super().__init__(f"no C library in use has `{symbol}`")
        self.symbol = symbol


def address(name: str) -> int:
    """The address of a C function or variable of this process.  Raises Missing."""
    if found := lookup(None, name.encode()):
        return found
    for library in MORE:
        try:
            ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        except OSError:  # another C library, which has all in one
            continue
        if found := lookup(None, name.encode()):
            return found
    raise Missing(name)


C = ctypes.CDLL(None, use_errno=True)
lookup = C.dlsym
lookup.argtypes, lookup.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_void_p


def protect(start: int, size: int, how: int) -> None:
    if C.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), how):
        raise OSError(ctypes.get_errno(), f"cannot make code executable: {os.strerror(ctypes.get_errno())}")


def load(program: Program) -> LoadedImage:
    """Loads a program.  Raises DplError if a C function is missing that it declares."""
    try:
        loaded = LoadedImage(program.image)
    except Missing as error:
        sites = sites_of(program)
        if error.symbol not in sites.externs:
            raise
        from dplc.machine.failure.failures import missing

        raise missing(error.symbol, sites) from None
    offer_lapack(loaded.base + program.image.exports[LAPACK])
    perf_map.note(program.code, ENTRY, loaded.start)
    return loaded


def sites_of(program: Program) -> Sites:
    """The places at which the program can fail."""
    from dplc.machine.failure.failures import Sites

    return Sites.from_json(program.sites)


def execute(program: Program, args: Sequence[str] = ()) -> int:
    """Runs a program; its exit code, or DplError if it failed."""
    return run_loaded(program, load(program), args)


def run_loaded(
    program: Program, loaded: LoadedImage, args: Sequence[str], meanwhile: Callable[[], None] = lambda: None
) -> int:
    """Runs a program; its exit code, or DplError if it failed.  `meanwhile` is called now and then."""
    return run(loaded, args, lambda: loaded.parts(program), lambda: sites_of(program), meanwhile)
