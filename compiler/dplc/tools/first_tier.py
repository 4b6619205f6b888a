"""The first tier of a run: a program that is not compiled yet begins in the interpreter.

    interpreted(program, args, seconds)    what it has printed when it ended, or after so much processor time

A program that ends meanwhile is compiled after its second run only, for those that follow: most texts run once, and are
changed.  The others begin again in native code, which
does not print what is on standard output already (`rt/output.rt`).  What cannot be done twice, and failures, are left
to native code (`dpl.eval.speculation`).

The program is interpreted on a thread of its own, and printed by the thread that waits for it: the former is stopped by
an exception, at any moment, and a text is either handed over or not printed at all.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from dpl.diagnostics import DplError

from dplc.stack import started

if TYPE_CHECKING:
    from dpl.core import term

SECONDS = 0.06  # of processor time, unless DPL_INTERPRET says another number
LOOK = 0.005  # seconds between two looks at the time


def seconds_allowed() -> float:
    """How long the interpreter may run before native code takes over: DPL_INTERPRET, if that is a number."""
    try:
        chosen = float(os.environ.get("DPL_INTERPRET", SECONDS))
    except ValueError:
        return SECONDS
    return chosen if 0 <= chosen < float("inf") else SECONDS


def interpreted(
    program: term.Program, args: Sequence[str], seconds: float, strict: bool = True
) -> tuple[bytes, int | None]:
    """What a program has printed, and its exit code if it has ended.  A bug of the interpreter is raised if `strict`,
    and else left alone, as native code need not have it."""
    from dpl.eval.speculation import Uncertain, speculate

    said = b""
    codes: list[int] = []
    texts: SimpleQueue[str] = SimpleQueue()
    unexpected: list[BaseException] = []

    def work() -> None:
        try:
            codes.append(speculate(program, args, texts.put))
        except (DplError, MemoryError, RecursionError, Uncertain):
            pass
        except BaseException as failure:
            unexpected.append(failure)
        finally:
            texts.put("")

    with not_told(Uncertain):
        thread, until = started(work), time.process_time() + seconds
        assert thread.ident is not None
        while thread.is_alive():
            said += printed(texts)
            if time.process_time() > until:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Uncertain))
        while not texts.empty():
            said += printed(texts)
    if unexpected and strict:
        raise unexpected[0]
    return said, codes[0] if codes else None


def printed(texts: SimpleQueue[str]) -> bytes:
    """Print the next text.  Waits for it, but not for long."""
    try:
        text = texts.get(timeout=LOOK)
    except Empty:
        return b""
    sys.stdout.write(text)
    sys.stdout.flush()
    return text.encode("utf-8", "surrogateescape")


@contextmanager
def not_told(kind: type[BaseException]) -> Generator[None]:
    """Python tells of exceptions that it cannot raise, as in a finalizer or where a thread ends; not of these."""
    before, of_threads = sys.unraisablehook, threading.excepthook
    sys.unraisablehook = lambda what: None if what.exc_type is kind else before(what)
    threading.excepthook = lambda what: None if what.exc_type is kind else of_threads(what)
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = before, of_threads


class Rest:
    """Standard output for a program that is interpreted from its beginning again: what it has printed before is left
    out."""

    def __init__(self, said: bytes) -> None:
        self.left = len(said.decode("utf-8", "surrogateescape"))

    def write(self, text: str) -> None:
        sys.stdout.write(text[self.left :])
        self.left = max(0, self.left - len(text))

    def flush(self) -> None:
        sys.stdout.flush()
