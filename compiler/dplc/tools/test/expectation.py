"""python -m dplc.tools.test.expectation FILE: does one expectation of a program that `dpl test` has made ready in FILE.

Each has a process of its own, as it may fail in any way; which it is, is in the environment
(`passes/entry/expectations.py`).
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from dplc.machine.object.compiled import Compiled
from dplc.machine.run.jit import execute
from dplc.stack import on_large_stack
from dplc.tools.process import guarded


def fulfil(file: Path) -> int:
    """Exit code, as of `dpl run`."""
    ready = pickle.loads(file.read_bytes())
    if isinstance(ready, Compiled):
        return execute(ready)
    from dplc.tools.run import interpret_program

    return on_large_stack(lambda: interpret_program(ready, []))


if __name__ == "__main__":
    sys.exit(guarded(lambda: fulfil(Path(sys.argv[1]))))
