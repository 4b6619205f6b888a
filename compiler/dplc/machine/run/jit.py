"""Object code that LLVM's JIT loads: the units of sessions, which refer to one another, and libraries for Python.

Whole programs are linked by ourselves (`object/link.py`) and run without LLVM (`program.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dplc.machine.failure.failures import Sites, missing
from dplc.machine.llvm import api, target
from dplc.machine.run import perf_map
from dplc.machine.run.execute import ENTRY, FLUSH, Loaded


class LoadedUnit(Loaded):
    """The object code of a unit in memory."""

    def __init__(self, jit: api.Jit, name: str, code: bytes, library: str, cells: Mapping[str, int]) -> None:
        elements = [(api.OBJECT, code), (api.LIBRARY, library.encode()), api.PROCESS]
        self.linked = api.Linked(jit, name, elements, [ENTRY, FLUSH], cells)
        super().__init__(self.linked.addresses.__getitem__)


class LoadedLibrary:
    """A library's object code in memory, in a world of its own; `linked` has the addresses of `symbols`."""

    def __init__(self, code: bytes, symbols: Sequence[str]) -> None:
        self.linked = api.Linked(new_jit(), "program", [(api.OBJECT, code), api.PROCESS], symbols)
        perf_map.note(code, symbols[0], self.address(symbols[0]))

    def address(self, symbol: str) -> int:
        """The address of an exported symbol."""
        return self.linked.addresses[symbol]


def is_linked(symbol: str) -> bool:
    """True if this process has a C function of that name."""
    target.start()
    api.load_library("libm.so.6")
    return bool(api.address_of(symbol))


def new_jit() -> api.Jit:
    """A JIT for this machine, with the C library's functions of numbers."""
    target.start()
    api.load_library("libm.so.6")
    return api.Jit(target.host())


def require_externs(sites: Sites) -> None:
    """Fails if a C function is missing."""
    for symbol in sites.externs:
        if not is_linked(symbol):
            raise missing(symbol, sites)
