"""Running as a process that behaves: exit codes, messages on standard error, Ctrl-C and other signals.

Exit codes: 0 fine; 1 the program failed; 2 wrong usage; 70 a bug in DPL itself; 130 interrupted; 141 the reader of the
output has gone.  SIGTERM and SIGHUP end the process as they would, when what was printed has been written.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from dpl.diagnostics import Bug, Diagnostic, DplError

from dplc.stack import memory_limit
from dplc.tools.report import report
from dplc.tools.streams import OutputFailed, give_up_output


class Ended(BaseException):
    """A signal is to end the process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


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
        catch_signals()
        code = work()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        leave(130, "interrupted")
        return 130
    except Ended as end:
        leave(128 + end.number, by_signal=end.number)
        return 128 + end.number
    except OutputFailed as failure:
        return output_failed(failure)
    except Exception as failure:
        flush()
        return told(failure)


def told(failure: Exception) -> int:
    """Tells a failure; its exit code."""
    if isinstance(failure, DplError):
        report(failure.diagnostics)
        return 1
    if is_memory(failure):
        report([Diagnostic("R0802", "out of memory")])
        return 1
    code = usage(failure)
    return internal(failure) if code is None else code


def is_memory(failure: Exception) -> bool:
    """Whether memory was lacking, for data or for code that was to be loaded.  What loads LLVM does not say why it
    could not."""
    if not isinstance(failure, OSError | ImportError):
        return isinstance(failure, MemoryError)
    said = str(failure)
    limited = memory_limit() < sys.maxsize
    return limited and any(hint in said for hint in (os.strerror(errno.ENOMEM), "libllvmlite", "failed to map"))


def output_failed(failure: OutputFailed) -> int:
    """A reader that has gone is nothing to talk about: the status is that which a signal would give."""
    give_up_output()
    if failure.code == errno.EPIPE:
        return 141
    report([Diagnostic("R0506", str(failure))])
    return 1


def catch_signals() -> None:
    """SIGTERM and SIGHUP are exceptions, unless they are ignored (as by `nohup`)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def end(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_DFL)  # the second one is not asked to wait
    raise Ended(number)


def leave(code: int, message: str = "", by_signal: int = 0) -> None:
    """End the process now, whatever other threads do, with output flushed if that takes no more than a second."""
    late = threading.Timer(1, os._exit, (code,))
    late.daemon = True
    late.start()
    flush()
    if message:
        print(message, file=sys.stderr, flush=True)
    if by_signal:
        signal.signal(by_signal, signal.SIG_DFL)
        os.kill(os.getpid(), by_signal)
    os._exit(code)


def flush() -> None:
    with suppress(OutputFailed):
        sys.stdout.flush()


def usage(failure: Exception) -> int | None:
    """click's complaints about the command line: exit code 2."""
    if "click" not in sys.modules:  # a program that was compiled before runs without it
        return None
    import click

    if isinstance(failure, click.exceptions.Exit):
        return failure.exit_code
    if isinstance(failure, click.ClickException):
        failure.show()
        return failure.exit_code
    return None


def internal(failure: Exception) -> int:
    """A bug of ours: say so, keep the details in a file, and tell how to report it."""
    import tempfile
    import traceback

    details = "".join(traceback.format_exception(failure))
    with tempfile.NamedTemporaryFile("w", prefix="dpl-bug-", suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(f"dpl {' '.join(sys.argv[1:])}\nPython {sys.version}\n\n{details}")
    first = str(failure).split("\n")[0][:200]
    print(f"internal error: {type(failure).__name__}: {first}", file=sys.stderr)
    print("This is a bug in DPL, not in your program.", file=sys.stderr)
    print(f"Please report it, with the program and the details in\n  {file.name}", file=sys.stderr)
    if isinstance(failure, Bug) and failure.repeat:
        print(f"The stage of the compiler that failed can be repeated by\n  {failure.repeat}", file=sys.stderr)
    if os.environ.get("DPL_TRACEBACK"):
        print(details, file=sys.stderr)
    return 70
