"""Other ways to run a program than as native code from beginning to end: over threads, with functions that are replaced
before it starts or while it runs, and begun in the interpreter.  Each takes the program in core, and what writes it as
LLVM's text with its sites."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import redirect_stdout

from dpl.core import term
from dplc.machine.failure.failures import Sites
from dplc.machine.llvm.versions import plain
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.run.linked import better, linked, quickly_linked
from dplc.machine.run.program import execute, load, run_loaded
from dplc.machine.run.tiers import REPLACED, replace
from dplc.machine.runtime import shared
from dplc.tools.first_tier import interpreted

Writes = Callable[[], tuple[str, Sites]]
SPREAD = {"DPL_THREADS": "3", "DPL_BLOCK": "1"}
BEGINNING = 0.01  # seconds of the processor, in which some programs end


def over_threads(_: term.Program, write: Writes) -> None:
    """Each loop in blocks of one point."""
    os.environ.update(SPREAD)
    try:
        module, sites = write()
        execute(linked(Compiled(assemble(plain(module, shared.shared().texts), most=0), sites.to_json())))
    finally:
        for name in SPREAD:
            del os.environ[name]


def replaced(_: term.Program, write: Writes) -> None:
    """Every second function is an optimised one."""
    module, sites = write()
    quick = quickly_linked(module, sites.to_json())
    loaded = load(quick)
    if quick.text:
        replace(loaded, better(quick, list(quick.lines)[::2]))
    run_loaded(quick, loaded, [])


def in_steps(_: term.Program, write: Writes) -> None:
    """Each step of a long loop is a call, as if its function had been replaced after the step before."""
    module, sites = write()
    quick = quickly_linked(module, sites.to_json())
    loaded = load(quick)
    if quick.text:
        ctypes.c_int8.from_address(loaded.base + quick.image.exports[REPLACED]).value = 1
    run_loaded(quick, loaded, [])


def begun(program: term.Program, write: Writes) -> None:
    """In the interpreter for a while, then again in native code, which prints the rest."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out, redirect_stdout(out):
        said, code = interpreted(program, [], BEGINNING)
    if code is None:
        module, sites = write()
        quick = quickly_linked(module, sites.to_json())
        loaded = load(quick)
        loaded.already(said)
        run_loaded(quick, loaded, [])


ROADS = {"threads": over_threads, "replaced": replaced, "steps": in_steps, "begun": begun}
