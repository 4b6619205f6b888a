"""object code -> a running program.

The program has a thread of its own, with a stack so large that recursion is limited by memory; it is reserved, and
costs only what is touched.  When native code fails it writes a record and comes back, and the record becomes a message.

Imports little, as the way from the cache must be short.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Sequence

import llvmlite.binding as llvm
from dpl.diagnostics import DplError

from dplc.machine.failure.failures import Record, Sites, error, missing
from dplc.machine.llvm import target
from dplc.machine.object.compiled import Compiled
from dplc.machine.runtime import shared
from dplc.machine.runtime.failure_codes import Failure

ENTRY, FLUSH, LAPACK = "dpl_entry", "dpl_flush", "rt.lapack"
STACK_MIB = 2048  # enough for more than ten million calls; a quarter of the machine's memory where that is less
CALLS = 64  # of the innermost calls that a failure notes, and as many of the outermost
NEED = 64 << 10  # bytes of the stack that Python has used before native code begins, generously


class FailureRecord(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int64), ("site", ctypes.c_int64), ("a", ctypes.c_int64), ("b", ctypes.c_int64),
        ("text", ctypes.c_void_p), ("size", ctypes.c_int64), ("count", ctypes.c_int64),
        ("calls", ctypes.c_int64 * (2 * CALLS)),
    ]  # fmt: skip

    def addresses(self) -> list[int]:
        """What calls would have returned to, innermost first; of many, the first and the last ones."""
        last = range(max(CALLS, self.count - CALLS), self.count)
        return [*self.calls[: min(CALLS, self.count)], *(self.calls[CALLS + i % CALLS] for i in last)]


class Argument(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("size", ctypes.c_int64)]


class Loaded:
    """Object code in memory, its entry points resolved."""

    def __init__(self, jit: llvm.LLJIT, library: llvm.JITLibraryBuilder, name: str) -> None:
        self.jit = jit
        self.tracker = library.export_symbol(ENTRY).export_symbol(FLUSH).link(jit, name)
        pointer, size, status = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
        entry = ctypes.CFUNCTYPE(status, size, pointer, ctypes.c_int32, size, pointer)
        self.entry = entry(self.tracker[ENTRY])
        self.flush = ctypes.CFUNCTYPE(None)(self.tracker[FLUSH])

    def flush_soon(self) -> None:
        """Writes what the program has printed so far, for whoever must end the process; in a second at most, as whoever
        reads may have stopped reading."""
        flushing = threading.Thread(target=self.flush, daemon=True)
        flushing.start()
        flushing.join(1)


def load(code: bytes, sites: Sites) -> Loaded:
    """A whole program, with a runtime library of its own."""
    jit = new_jit()
    require_externs(sites)
    library = llvm.JITLibraryBuilder().add_object_img(code).add_object_img(shared.code()).add_current_process()
    loaded = Loaded(jit, library.export_symbol(LAPACK), "program")
    offer_lapack(loaded.tracker)
    return loaded


def new_jit() -> llvm.LLJIT:
    target.start()
    llvm.load_library_permanently("libm.so.6")
    # JITLink keeps an object in one piece; RuntimeDyld ends the process where a stack of gigabytes lies in between
    return llvm.create_lljit_compiler(target.host(), use_jit_link=True)


def require_externs(sites: Sites) -> None:
    """Complains of C functions that are nowhere."""
    for symbol in sites.externs:
        if not llvm.address_of_symbol(symbol):
            raise missing(symbol, sites)


def offer_lapack(tracker: llvm.ResourceTracker) -> None:
    ctypes.c_void_p.from_address(tracker[LAPACK]).value = ctypes.cast(FINDER, ctypes.c_void_p).value


def find_lapack(table: int) -> None:
    """Fills in the table of `rt/lapack.rt`, whose first entry is this function, when a program asks for it."""
    from dpl.lapack import find

    if found := find():
        entries = (found.width, *found.addresses)
        (ctypes.c_int64 * len(entries)).from_address(table + 8)[:] = entries


FINDER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(find_lapack)


AGAIN = 0.1  # seconds


class Running(threading.Thread):
    """A program on its way.  `done` is for those who are interrupted while they wait (a thread whose `join` is
    interrupted seems to have ended)."""

    def __init__(self, loaded: Loaded, args: Sequence[str], stack: int) -> None:
        super().__init__(daemon=True, name="program")
        self.loaded = loaded
        self.args = [os.fsencode(arg) for arg in args]  # what the command was given
        self.stack = stack
        self.record = FailureRecord()
        self.done = threading.Event()

    def run(self) -> None:
        argv = (Argument * max(1, len(self.args)))(*(Argument(arg, len(arg)) for arg in self.args))
        terminal = int(os.isatty(1))
        self.loaded.entry(len(self.args), argv, terminal, self.stack - NEED, ctypes.byref(self.record))
        self.done.set()

    def wait(self) -> None:
        """Until the program has ended.  A signal that comes just before Python begins to wait is seen only when it
        stops waiting: so it does, now and then."""
        while self.is_alive() and not self.done.wait(AGAIN):
            pass


def execute(compiled: Compiled, args: Sequence[str] = ()) -> int:
    """Runs a program; its exit code, or DplError if it failed."""
    sites = Sites.from_json(compiled.sites)
    loaded = load(compiled.code, sites)
    try:
        running = start(loaded, args)
        running.wait()
    except BaseException:  # Ctrl-C, or a signal that ends the process
        loaded.flush_soon()
        raise
    match running.record.code:
        case Failure.NONE:
            return 0
        case Failure.EXIT:
            return running.record.a & 0xFF
        case _:
            raise failure(compiled, loaded, running.record, sites)


def failure(compiled: Compiled, loaded: Loaded, record: FailureRecord, sites: Sites) -> DplError:
    """The message for what native code wrote down."""
    from dplc.machine.failure.trace import frames

    text = ctypes.string_at(record.text, record.size).decode("utf-8", "replace") if record.text else ""
    calls = frames(compiled.code, ENTRY, loaded.tracker[ENTRY], record.addresses())
    what = Record(Failure(record.code), record.site, record.a, record.b, -record.size, text)
    return error(what, list(calls), sites)


def start(loaded: Loaded, args: Sequence[str]) -> Running:
    """On a thread with the largest stack that can be had."""
    sys.stdout.flush()  # what we printed comes before what the program prints
    mib = stack_mib()
    before = threading.stack_size()
    while True:
        running = Running(loaded, args, mib << 20)
        try:
            threading.stack_size(mib << 20)
            running.start()
            return running
        except (RuntimeError, ValueError, MemoryError):  # more than the system gives
            if mib <= 8:
                raise MemoryError from None
            mib //= 2
        finally:
            threading.stack_size(before)


def stack_mib() -> int:
    chosen = os.environ.get("DPL_STACK", "")
    if chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(64, min(STACK_MIB, memory >> 22))
