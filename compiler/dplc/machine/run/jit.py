"""Object code that LLVM's JIT loads: the units of sessions, which refer to one another, and libraries for Python.

Whole programs are linked by ourselves (`object/link.py`) and run without LLVM (`program.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm

from dplc.machine.failure.failures import Sites, missing
from dplc.machine.llvm import target
from dplc.machine.run import perf_map
from dplc.machine.run.execute import ENTRY, FLUSH, Loaded


class LoadedUnit(Loaded):
    """The object code of a unit in memory."""

    def __init__(self, jit: llvm.LLJIT, library: llvm.JITLibraryBuilder, name: str) -> None:
        self.jit = jit
        self.tracker = library.export_symbol(ENTRY).export_symbol(FLUSH).link(jit, name)
        super().__init__(lambda symbol: self.tracker[symbol])


class LoadedLibrary:
    """A library's object code in memory, in a world of its own; `tracker` has the addresses of `symbols`."""

    def __init__(self, code: bytes, symbols: Sequence[str]) -> None:
        self.jit = new_jit()
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol in symbols:
            library = library.export_symbol(symbol)
        self.tracker = library.link(self.jit, "program")
        perf_map.note(code, symbols[0], self.address(symbols[0]))

    def address(self, symbol: str) -> int:
        return self.tracker[symbol]


def is_linked(symbol: str) -> bool:
    """True if this process has a C function of that name."""
    target.start()
    llvm.load_library_permanently("libm.so.6")
    return bool(llvm.address_of_symbol(symbol))


def new_jit() -> llvm.LLJIT:
    target.start()
    llvm.load_library_permanently("libm.so.6")
    # JITLink keeps an object in one piece; RuntimeDyld aborts if a stack of gigabytes lies between its sections
    return llvm.create_lljit_compiler(target.host(), use_jit_link=True)


def require_externs(sites: Sites) -> None:
    """Fails if a C function is missing."""
    for symbol in sites.externs:
        if not is_linked(symbol):
            raise missing(symbol, sites)
