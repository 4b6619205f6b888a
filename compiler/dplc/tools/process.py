"""Running as a process that behaves: exit codes, diagnostics on standard error, a large stack, Ctrl-C.

Exit codes: 0 fine; 1 the program failed; 2 wrong usage; 70 a bug in DPL itself; 130 interrupted.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from dpl.diagnostics import Diagnostic, DplError

from dplc.tools.report import report

Result = TypeVar("Result")

STACK = 1 << 29  # bytes, touched only as far as needed: the passes recurse over the program's structure


def on_large_stack(work: Callable[[], Result], stop: Callable[[int], object] | None = None) -> Result:
    """The result of `work` (or its exception), done on a thread with a large stack.  Ctrl-C reaches the caller; with
    `stop`, which makes the thread of a number stop, not before that has."""
    outcome: list[Result] = []
    failures: list[BaseException] = []
    done = threading.Event()  # a thread whose `join` is interrupted would seem to have ended

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as failure:
            failures.append(failure)
        finally:
            done.set()

    before = threading.stack_size(STACK)
    sys.setrecursionlimit(10**6)
    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    threading.stack_size(before)
    while not done.is_set():
        try:
            done.wait(0.5)
        except KeyboardInterrupt:
            if stop is None or thread.ident is None:
                raise
            stop(thread.ident)
    if failures:
        raise failures[0]
    if not outcome:  # stopped when it had just failed
        raise KeyboardInterrupt
    return outcome[0]


def share_heap() -> None:
    """All threads allocate from the process's own heap, which can grow without end.  glibc would give the program's
    thread another one, in pieces of 64 MiB, and ask the system for every larger array anew."""
    arenas = -8
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(arenas, 1)


def guarded(work: Callable[[], int]) -> int:
    """The exit code of `work`; its failures are told on standard error."""
    share_heap()
    try:
        code = work()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        leave(130, "interrupted")
        return 130
    except DplError as failure:
        flush()
        report(failure.diagnostics)
        return 1
    except BrokenPipeError:  # the reader has gone: nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except MemoryError:
        flush()
        report([Diagnostic("R0802", "out of memory")])
        return 1
    except Exception as failure:
        flush()
        code = usage(failure)
        return internal(failure) if code is None else code


def leave(code: int, message: str = "") -> None:
    """End the process now, whatever other threads do, with output flushed."""
    flush()
    if message:
        print(message, file=sys.stderr, flush=True)
    os._exit(code)


def flush() -> None:
    with suppress(OSError):
        sys.stdout.flush()


def usage(failure: Exception) -> int | None:
    """click's complaints about the command line: exit code 2."""
    if "click" not in sys.modules:  # a program that was compiled before runs without it
        return None
    import click

    if isinstance(failure, click.exceptions.Exit):
        return failure.exit_code
    if isinstance(failure, click.Abort):  # what click makes of Ctrl-C
        leave(130, "interrupted")
    if isinstance(failure, click.ClickException):
        failure.show()
        return failure.exit_code
    return None


def internal(failure: Exception) -> int:
    """A bug of ours: say so, keep the details in a file, and tell how to report it."""
    details = "".join(traceback.format_exception(failure))
    with tempfile.NamedTemporaryFile("w", prefix="dpl-bug-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(f"dpl {' '.join(sys.argv[1:])}\nPython {sys.version}\n\n{details}")
    first = str(failure).split("\n")[0][:200]
    print(f"internal error: {type(failure).__name__}: {first}", file=sys.stderr)
    print("This is a bug in DPL, not in your program.", file=sys.stderr)
    print(f"Please report it, with the program and the details in\n  {file.name}", file=sys.stderr)
    if os.environ.get("DPL_TRACEBACK"):
        print(details, file=sys.stderr)
    return 70
