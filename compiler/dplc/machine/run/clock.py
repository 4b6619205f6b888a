"""A precise clock of processor time whose ticks are signals, handled by machine code in the thread that was running.

The system's timers (`ticks.py`) tick when the system's own clock does, each four milliseconds or so, and a program that
repeats something at a similar pace is always met at the same places.  Linux's performance events have a timer of their
own, of nanoseconds.  Where they are forbidden, as in some containers, the system's timer takes their place.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
from contextlib import contextmanager

from dplc.machine.run.ticks import handling, ticking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

OPEN = {"x86_64": 298, "aarch64": 241}  # the system call perf_event_open
SOFTWARE, CPU_CLOCK = 1, 0
SIZE = 128  # bytes of its attributes, in version 7
DISABLED, INHERIT, NO_KERNEL, NO_HYPERVISOR = 1 << 0, 1 << 1, 1 << 5, 1 << 6
THREADS_ONLY, UNTIL_EXEC, TRAP = 1 << 35, 1 << 36, 1 << 37
CLOSE_ON_EXEC = 8
ENABLE, DISABLE = 0x2400, 0x2401


@contextmanager
def sampling(handler: int, interval: float) -> Generator[bool]:
    """While this lasts, the code at the address `handler` gets a signal after each interval: seconds of processor time
    of this thread and of those that it starts.  Gives whether the clock is precise."""
    event = opened(interval)
    if event is None:
        with ticking(handler, interval):
            yield False
        return
    try:
        with handling(signal.SIGTRAP, handler, late=True):
            control(event, ENABLE)
            try:
                yield True
            finally:  # before the signal ends the program again, as where Ctrl-C came
                control(event, DISABLE)
    finally:
        os.close(event)


def opened(interval: float) -> int | None:
    """A performance event that is off; None if the system does not let us have one.  Time in the kernel counts if the
    system allows that."""
    bits = DISABLED | INHERIT | NO_HYPERVISOR | THREADS_ONLY | UNTIL_EXEC | TRAP
    for more in (0, NO_KERNEL):
        head = struct.pack("=IIQQQQQ", SOFTWARE, SIZE, CPU_CLOCK, round(1e9 * interval), 0, 0, bits | more)
        call = ctypes.CDLL(None, use_errno=True).syscall
        attributes = ctypes.create_string_buffer(head, SIZE)
        event = call(OPEN[platform.machine()], attributes, 0, -1, -1, ctypes.c_ulong(CLOSE_ON_EXEC))
        if event >= 0:
            return event
    return None


def control(event: int, request: int) -> None:
    import fcntl

    fcntl.ioctl(event, request, 0)
