"""python tests/agree/tiered.py FILE MOMENT: a program whose functions are replaced by better ones at some moment.

before    before it starts; every second function is optimised
steps     never; but every step of a long loop is done by a call, as if it had been replaced after the step before
SECONDS   when it has run for so long, every second function; after as long again, all
"""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path

from dpl.diagnostics import DplError
from dpl.syntax.load import read
from dplc.machine.run.linked import better, quickly_linked
from dplc.machine.run.program import LoadedImage, Program, load, run_loaded
from dplc.machine.run.tiers import REPLACED, replace
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack
from dplc.tools.report import report


def main(file: str, moment: str) -> int:
    source = read(Path(file))
    text, sites = on_large_stack(lambda: compile_to("llvm", source, Context())[1])
    quick = quickly_linked(text, sites.to_json())
    loaded = load(quick)
    if moment == "steps" and quick.text:
        ctypes.c_int8.from_address(loaded.base + quick.image.exports[REPLACED]).value = 1
    elif quick.text:
        names = list(quick.lines)
        some = better(quick, names[::2])
        if moment == "before":
            replace(loaded, some)
        else:
            late(float(moment), loaded, some)
            late(2 * float(moment), loaded, better(some, names))
    try:
        return run_loaded(quick, loaded, [])
    except DplError as error:
        report(error.diagnostics)
        return 1


def late(seconds: float, loaded: LoadedImage, program: Program) -> None:
    timer = threading.Timer(seconds, replace, (loaded, program))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
