"""python tests/agree/tiered.py FILE MOMENT: a program whose functions are replaced by optimised ones at some moment.

before    before it starts
steps     never; but every step of a long loop is done by a call, as if it had been replaced after the step before
SECONDS   when it has run for so long
"""

from __future__ import annotations

import ctypes
import sys
import threading
import zlib
from pathlib import Path

from dpl.diagnostics import DplError
from dpl.syntax.load import read
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.run.linked import linked, quickly_linked
from dplc.machine.run.program import load, run_loaded
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
        code = assemble(zlib.decompress(quick.text).decode("utf-8", "surrogatepass"))
        optimised = linked(Compiled(code, quick.sites))
        if moment == "before":
            replace(loaded, optimised)
        else:
            timer = threading.Timer(float(moment), replace, (loaded, optimised))
            timer.daemon = True
            timer.start()
    try:
        return run_loaded(quick, loaded, [])
    except DplError as error:
        report(error.diagnostics)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
