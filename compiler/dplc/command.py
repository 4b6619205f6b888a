#!python
"""The script `dpl`.  It is no entry point of the package: what an installer writes for these imports `re` first, which
takes as long as a small program, and Ctrl-C meanwhile shows a traceback."""

import _signal  # pyrefly: ignore[missing-import]

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # not ignored, as it is behind `&`
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # until `main` takes it

from dplc.cli import main

if __name__ == "__main__":
    main()
