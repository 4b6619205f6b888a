"""Runs work on a thread with a large stack, because the passes recurse over the program's structure."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

STACK = 1 << 29  # bytes; the system commits only the pages that are used
LEAST_STACK = 1 << 24


def on_large_stack(work: Callable[[], Result], stop: Callable[[int], object] | None = None) -> Result:
    """Run `work` on a thread with a large stack; returns its result or raises its exception.  Ctrl-C raises
    KeyboardInterrupt in the caller at once.  With `stop`, Ctrl-C calls it with the thread's number instead, and the
    caller waits until the thread has stopped."""
    outcome: list[Result] = []
    failures: list[BaseException] = []
    running: list[int] = []  # the thread's number
    done = threading.Event()  # a thread whose `join` is interrupted would seem to have ended

    def body() -> None:
        running.append(threading.get_ident())
        try:
            outcome.append(work())
        except BaseException as failure:
            failures.append(failure)
        finally:
            done.set()

    sys.setrecursionlimit(10**6)
    begun = False
    while not done.is_set():
        try:
            if not begun:
                begun = True
                started(body)  # a Ctrl-C may come while this waits for a thread that works already
            done.wait(0.5)
        except KeyboardInterrupt:
            if stop is None or not running:
                raise
            stop(running[0])
    if failures:
        raise failures[0]
    if not outcome:  # stopped just as it failed
        raise KeyboardInterrupt
    return outcome[0]


def started(body: Callable[[], None]) -> threading.Thread:
    """Start a thread with the largest stack that the system grants.  Raises MemoryError below LEAST_STACK."""
    before, size = threading.stack_size(), min(STACK, memory_limit() >> 3)
    while True:
        thread = threading.Thread(target=body, daemon=True)
        try:
            threading.stack_size(size)
            thread.start()
            return thread
        except (RuntimeError, MemoryError):  # more than the system grants
            size //= 2
            if size < LEAST_STACK:
                raise MemoryError from None
        finally:
            threading.stack_size(before)


def memory_limit() -> int:
    """The bytes of address space that the process may use (`ulimit -v`)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
