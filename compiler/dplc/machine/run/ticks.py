"""A timer whose signal is handled by machine code, while a program runs."""

from __future__ import annotations

import ctypes
import signal
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

FLAGS = 0x4 | 0x10000000  # SA_SIGINFO, SA_RESTART


class Action(ctypes.Structure):
    """`struct sigaction` of the GNU C library."""

    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_uint64 * 16), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]  # fmt: skip


@contextmanager
def handling(number: int, handler: int, *, late: bool = False) -> Generator[None]:
    """While this lasts, a signal is handled by the code at the address `handler`; then as before.  With `late`, signals
    may come after that; they do nothing, as the system's default would end the program."""
    sigaction = ctypes.CDLL(None, use_errno=True).sigaction
    ours, before = Action(handler=handler, flags=FLAGS), Action()
    if sigaction(number, ctypes.byref(ours), ctypes.byref(before)):
        raise OSError(ctypes.get_errno(), "sigaction")
    try:
        yield
    finally:
        signal.signal(number, lambda _number, _frame: None)  # one may be on its way
        if not late:
            sigaction(number, ctypes.byref(before), None)


@contextmanager
def ticking(handler: int, interval: float) -> Generator[None]:
    """While this lasts, the code at the address `handler` gets a signal after each interval: seconds of processor
    time, of which the system may make more."""
    with handling(signal.SIGPROF, handler):
        signal.setitimer(signal.ITIMER_PROF, interval, interval)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
