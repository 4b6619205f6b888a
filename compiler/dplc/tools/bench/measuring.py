"""python -m dplc.tools.bench.measuring FILE: runs the measuring program that `dpl bench` compiled to FILE.

It has a process of its own, because the functions that it calls may not terminate.  Each line is flushed at once.  A
failure writes its title to standard error.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from dpl.diagnostics import DplError

from dplc.machine.run.program import execute
from dplc.tools.process import share_heap


def main(file: Path) -> int:
    share_heap()
    try:
        return execute(pickle.loads(file.read_bytes()))
    except DplError as failure:
        print(failure.diagnostics[0].title, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
