"""The command `dpl`: dispatches the command line.

Heavy modules are imported only when needed: `dpl run FILE` needs no click, and a program from the cache neither parser
nor checker.
"""

from __future__ import annotations

import _signal  # pyrefly: ignore[missing-import]  (it takes no time)
import atexit
import gc
import os
import sys

from dplc import settings

codes: list[int] = []  # with which the command has ended
ALLOCATIONS = 20_000  # between two searches for garbage


def leave() -> None:
    """Ends the process as C does.  Python would look for garbage and free one object after the other: that is a tenth
    of a short run, and takes ten seconds for a debugger's gigabyte of states."""
    if codes:
        import ctypes

        ctypes.pythonapi.exit(codes[-1])  # no other thread of Python goes on meanwhile


def main() -> None:
    """The console script."""
    atexit.register(leave)  # the first, so it runs last
    gc.set_threshold(ALLOCATIONS)  # imports make no garbage: with Python's 700, a fiftieth of a short run looks for it
    try:
        sys.unraisablehook = unraisable
        if _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:  # by `command.py`
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        keep_bytecode()
        import signal

        from dplc.tools.process import guarded
        from dplc.tools.streams import behave

        behave()
        code = guarded(lambda: dispatch(sys.argv[1:]))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done
    except KeyboardInterrupt:  # so early that no output is pending
        return interrupted()
    except RuntimeError as failure:  # so Python 3.11 wraps what comes while it makes a class
        if isinstance(failure.__cause__, KeyboardInterrupt):
            return interrupted()
        raise
    codes.append(code)
    sys.exit(code)


def interrupted() -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


def unraisable(failure: sys.UnraisableHookArgs) -> None:
    """Handles a Ctrl-C that Python cannot raise, for example between two steps of an import."""
    if isinstance(failure.exc_value, KeyboardInterrupt):
        interrupted()
    sys.__unraisablehook__(failure)


def keep_bytecode() -> None:
    """Use DPL's own cache for bytecode."""
    from dplc.bytecode import keep

    keep()


def dispatch(args: list[str]) -> int:
    if args and args[0].endswith((".dp", ".md", ".ipynb")):
        args = ["run", *args]
    named = len(args) > 1 and args[0] == "run" and not args[1].startswith("-") and not args[1].endswith(".ipynb")
    if named and args[1] and not settings.mistake():
        from dplc.tools.run import run_file  # no options

        return run_file(args[1], args[2:])
    if args in (["--version"], ["-V"]):
        from dplc.tools.version import version

        sys.stdout.write(version() + "\n")
        return 0
    from click import Abort

    from dplc.commands import cli

    try:
        return cli.main(args, prog_name="dpl", standalone_mode=False) or 0
    except Abort as abort:  # click turns Ctrl-C into this, and any EOFError
        raise abort.__cause__ or KeyboardInterrupt from None


if __name__ == "__main__":
    if os.environ.get("DPL_PROFILE"):  # for the developers of DPL: profile the compiler
        import cProfile
        import threading

        profile = cProfile.Profile()
        threading.setprofile(lambda *_: profile.enable())  # the compiler works on a thread of its own
        try:
            main()
        finally:
            profile.dump_stats(os.environ["DPL_PROFILE"])
    else:
        main()
