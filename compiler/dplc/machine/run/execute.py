"""Machine code in memory -> a running program.

The program runs on a thread of its own with a very large stack, so that only memory limits recursion; pages that are
never touched cost nothing.  A failure fills in a record and jumps back to the entry; the record becomes a message.

This module imports little: a program from the cache should start quickly.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dpl.diagnostics import DplError

    from dplc.machine.failure.failures import Sites

ENTRY, FLUSH, LAPACK, BEGUN = "dpl_entry", "dpl_flush", "rt.lapack", "rt.begun"
STACK_MIB = 2048  # enough for ten million calls; at most a quarter of the machine's memory
CALLS = 64  # a failure records so many of the innermost calls, and as many of the outermost
NEED = 64 << 10  # bytes of stack that Python has used before native code begins, rounded up
AGAIN = 0.1  # seconds between two looks for signals


class FailureRecord(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int64), ("site", ctypes.c_int64), ("a", ctypes.c_int64), ("b", ctypes.c_int64),
        ("text", ctypes.c_void_p), ("size", ctypes.c_int64), ("count", ctypes.c_int64),
        ("calls", ctypes.c_int64 * (2 * CALLS)),
    ]  # fmt: skip

    def addresses(self) -> list[int]:
        """Return addresses, innermost first; of a long trace, both ends."""
        last = range(max(CALLS, self.count - CALLS), self.count)
        return [*self.calls[: min(CALLS, self.count)], *(self.calls[CALLS + i % CALLS] for i in last)]


class Argument(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("size", ctypes.c_int64)]


class Loaded:
    """Machine code in memory, with its entry points."""

    def __init__(self, address: Callable[[str], int]) -> None:
        """`address` gives that of an exported symbol."""
        pointer, size, status = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
        self.start = address(ENTRY)
        self.entry = ctypes.CFUNCTYPE(status, size, pointer, ctypes.c_int32, size, pointer)(self.start)
        self.flush = ctypes.CFUNCTYPE(None)(address(FLUSH))

    def flush_soon(self) -> None:
        """Writes buffered output before the process ends.  It takes a second at most, as the reader may have stopped
        reading."""
        flushing = threading.Thread(target=self.flush, daemon=True)
        flushing.start()
        flushing.join(1)


class Running(threading.Thread):
    """A program that is running.  `done` says when it has ended (a `join` that is interrupted makes a thread look
    ended)."""

    def __init__(self, loaded: Loaded, args: Sequence[str], stack: int) -> None:
        super().__init__(daemon=True, name="program")
        self.loaded = loaded
        self.args = [os.fsencode(arg) for arg in args]  # as bytes, which need not be UTF-8
        self.stack = stack
        self.record = FailureRecord()
        self.done = threading.Event()

    def run(self) -> None:
        """Runs the program, on this thread."""
        argv = (Argument * max(1, len(self.args)))(*(Argument(arg, len(arg)) for arg in self.args))
        terminal = int(os.isatty(1))
        self.loaded.entry(len(self.args), argv, terminal, self.stack - NEED, ctypes.byref(self.record))
        self.done.set()

    def wait(self, meanwhile: Callable[[], None]) -> None:
        """Waits for the end.  Python sees a signal that came just before the wait only when the wait is over, so it
        wakes up now and then, and calls `meanwhile`."""
        while self.is_alive() and not self.done.wait(AGAIN):
            meanwhile()


def run(
    loaded: Loaded,
    args: Sequence[str],
    parts: Callable[[], list[tuple[bytes, int]]],
    sites: Callable[[], Sites],
    meanwhile: Callable[[], None],
) -> int:
    """Runs a program; its exit code, or DplError if it failed.  `parts` are the objects that it was made of, each with
    the address of its entry; `meanwhile` is called now and then."""
    try:
        running = start(loaded, args)
        running.wait(meanwhile)
    except BaseException:  # Ctrl-C, or a signal that ends the process
        loaded.flush_soon()
        raise
    if running.record.code == 0:
        return 0
    from dplc.machine.runtime.failure_codes import Failure

    if running.record.code == Failure.EXIT:
        return running.record.a & 0xFF
    raise failure(parts(), running.record, sites())


def failure(parts: list[tuple[bytes, int]], record: FailureRecord, sites: Sites) -> DplError:
    """The message for a failure record."""
    from dplc.machine.failure.failures import Record, error
    from dplc.machine.failure.trace import frames
    from dplc.machine.runtime.failure_codes import Failure

    text = ctypes.string_at(record.text, record.size).decode("utf-8", "replace") if record.text else ""
    calls = frames(parts, ENTRY, record.addresses())
    what = Record(Failure(record.code), record.site, record.a, record.b, -record.size, text)
    return error(what, list(calls), sites, max(record.count - 2 * CALLS, 0))


def start(loaded: Loaded, args: Sequence[str]) -> Running:
    """Starts a program on a thread with the largest stack that the system gives."""
    sys.stdout.flush()  # our output comes before that of the program
    mib = stack_mib()
    before = threading.stack_size()
    while True:
        running = Running(loaded, args, mib << 20)
        try:
            threading.stack_size(mib << 20)
            running.start()
            return running
        except (RuntimeError, ValueError, MemoryError):  # the system refuses a stack of this size
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


def find_lapack(table: int) -> None:
    """Fills in the table of `rt/lapack.rt` on demand; this function is its first entry."""
    from dpl.system.lapack import find

    if found := find():
        entries = (found.width, *found.addresses)
        (ctypes.c_int64 * len(entries)).from_address(table + 8)[:] = entries


FINDER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(find_lapack)


def offer_lapack(table: int) -> None:
    """Writes the address of the finder to the table at this address."""
    ctypes.c_void_p.from_address(table).value = ctypes.cast(FINDER, ctypes.c_void_p).value
