"""The command as a well-behaved process: exit codes, messages on standard error, Ctrl-C and other signals.

Exit codes: 0 success; 1 the program failed; 2 wrong usage; 70 a bug in DPL itself; 130 interrupted; 141 the reader of
the output has closed it.  SIGTERM and SIGHUP end the process as usual, after its output has been flushed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import threading
from contextlib import suppress

from dplc.tools.streams import OutputFailed, give_up_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


FULL = (errno.ENOSPC, errno.EFBIG, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC))  # nothing can be written


class Ended(BaseException):
    """Raised when a signal ends the process."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def share_heap() -> None:
    """Make all threads allocate from the main heap, which can grow without limit.  By default glibc gives the program's
    thread another heap, in pieces of 64 MiB, and requests every larger array from the system."""
    arenas = -8
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(arenas, 1)


def guarded(work: Callable[[], int]) -> int:
    """Run `work` and return its exit code.  Failures are reported on standard error."""
    share_heap()
    try:
        catch_signals()
        return answered(work)
    except KeyboardInterrupt:
        leave(130, "interrupted")
        return 130
    except Ended as end:
        leave(128 + end.number, by_signal=end.number)
        return 128 + end.number


def answered(work: Callable[[], int]) -> int:
    """The exit code of `work`, or that of its failure, which is reported."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except OutputFailed as failure:
        return output_failed(failure)
    except Exception as failure:
        if isinstance(failure.__cause__, KeyboardInterrupt):  # came while Python 3.11 made a class, which wraps it
            raise KeyboardInterrupt from None
        flush()
        return told(failure)


def told(failure: Exception) -> int:
    """Report a failure and return its exit code."""
    from dpl.diagnostics import Diagnostic, DplError

    from dplc.tools.report import report

    if isinstance(failure, DplError):
        report(failure.diagnostics)
        return 1
    if is_memory(failure):
        report([Diagnostic("R0802", "out of memory")])
        return 1
    if isinstance(failure, OSError) and failure.errno in FULL:
        report([Diagnostic("E0572", f"cannot write {failure.filename or 'a file'}: {failure.strerror}")])
        return 1
    code = usage(failure)
    return internal(failure) if code is None else code


def is_memory(failure: Exception) -> bool:
    """True if there was not enough memory for data or for loading code.  A failure to load LLVM does not state its
    cause, so it counts if memory is limited."""
    from dplc.stack import memory_limit

    if not isinstance(failure, OSError | ImportError):
        return isinstance(failure, MemoryError)
    said = str(failure)
    limited = memory_limit() < sys.maxsize
    return limited and any(hint in said for hint in (os.strerror(errno.ENOMEM), "libllvmlite", "failed to map"))


def output_failed(failure: OutputFailed) -> int:
    """The exit code if output fails.  A closed pipe is not reported; its code is that of SIGPIPE."""
    give_up_output()
    if failure.code == errno.EPIPE:
        return 141
    from dpl.diagnostics import Diagnostic

    from dplc.tools.report import report

    report([Diagnostic("R0506", str(failure))])
    return 1


def catch_signals() -> None:
    """Turn SIGTERM and SIGHUP into exceptions, unless they are ignored (as by `nohup`)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def end(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
    raise Ended(number)


def leave(code: int, message: str = "", by_signal: int = 0) -> None:
    """End the process now, even if other threads are running.  Output is flushed if that takes at most a second."""
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
    """Report click's errors about the command line; returns the exit code, or None for other failures."""
    if "click" not in sys.modules:  # a program from the cache runs without click
        return None
    import click

    if isinstance(failure, click.exceptions.Exit):
        return failure.exit_code
    if isinstance(failure, click.ClickException):
        failure.show()
        return failure.exit_code
    return None


def internal(failure: Exception) -> int:
    """Report a bug in DPL: write the details to a file and ask the user to report it.  Returns exit code 70."""
    import tempfile
    import traceback

    from dpl.diagnostics import Bug

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
