"""python -m dplc.tools.test.expectation FILE: runs one expectation of the program that `dpl test` compiled to FILE.

Each expectation has a process of its own, because it may fail in any way.  An environment variable has its number
(`passes/entry/expectations.py`).
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from dplc.machine.run.program import Program, execute
from dplc.stack import on_large_stack
from dplc.tools.process import guarded


def fulfil(file: Path) -> int:
    """Run the expectation.  Returns an exit code like `dpl run`."""
    ready = pickle.loads(file.read_bytes())
    if isinstance(ready, Program):
        return execute(ready)
    from dplc.tools.run import interpret_program

    return on_large_stack(lambda: interpret_program(ready, [], sys.stdout))


if __name__ == "__main__":
    sys.exit(guarded(lambda: fulfil(Path(sys.argv[1]))))
