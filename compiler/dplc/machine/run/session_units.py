"""Interactive sessions: each input is a unit, which is compiled by itself, loaded beside the units before, and run
once.

Values that later units need are kept in cells of the process (`state` of flat), found by name.  The runtime library is
loaded once, so all units share one heap.  A unit can be interrupted: its functions and loops poll the stack limit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from ctypes import c_int64

from dpl.node import node
from dpl.regex import regex
from dpl.system import kept

from dplc.flat import term as f
from dplc.machine.emit.module.constants import FOREVER
from dplc.machine.emit.program import emit_program
from dplc.machine.failure.failures import Sites
from dplc.machine.llvm import api
from dplc.machine.llvm.literals import unescape
from dplc.machine.object import cache_file
from dplc.machine.object.assemble import assemble, module
from dplc.machine.object.compiled import Compiled
from dplc.machine.run.execute import LAPACK, Loaded, Running, failure, offer_lapack, start
from dplc.machine.run.jit import LoadedUnit, new_jit, require_externs
from dplc.machine.runtime import shared
from dplc.machine.runtime.failure_codes import Failure
from dplc.passes.kernels.frequency import effort

NOTHING: Mapping[str, str] = {}
STATE = regex(r'(?m)^@"(state [^"]*)" = internal (global \{ i64, \[(\d+) x i8\] \}) .*$')
RUNTIME, LIMIT = "runtime", "rt.stack_limit"


class Exit(Exception):
    """A unit ended the program, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@node
class SessionUnit:
    """Loadable machine code, the sites where it may fail, and the sizes of the cells that it uses."""

    compiled: Compiled
    sites: Sites
    cells: Mapping[str, int]


class SessionUnits:
    """The units of a session, in one process."""

    def __init__(self) -> None:
        self.jit = new_jit()
        elements = [(api.OBJECT, shared.code()), api.PROCESS]
        self.linked = api.Linked(self.jit, RUNTIME, elements, [LAPACK, LIMIT])
        self.runtime = self.linked.addresses
        offer_lapack(self.runtime[LAPACK])
        self.cells: dict[str, ctypes.Array] = {}
        self.count = 0

    def compile(self, program: f.Program) -> SessionUnit:
        """A unit of the program of one input.  Its cells are those of the session."""
        text, sites = emit_program(program, shared.mentioned, interruptible=True)
        cells = {unescape(name).decode(): int(size) for name, _, size in STATE.findall(text)}
        text = module(STATE.sub(r'@"\1" = external \2, align 16', text))
        code = assemble(text, most=effort(program), flat=True)
        return SessionUnit(Compiled(code, sites.to_json()), sites, cells)

    def compile_once(self, name: str, program: Callable[[], f.Program]) -> SessionUnit:
        """Compiles a unit that is always the same, and keeps it in the cache."""
        path = kept.place("objects", cache_file.name(b"session unit", name.encode()))
        if entry := cache_file.read(path):
            header, code = entry
            sites = header["sites"]
            return SessionUnit(Compiled(code, sites), Sites.from_json(sites), header["cells"])
        made = self.compile(program())
        cache_file.write(path, {"sites": made.compiled.sites, "cells": made.cells}, made.compiled.code)
        return made

    def run(self, unit: SessionUnit, loaded: Loaded) -> None:
        """Runs a unit, perhaps again.  Its code must stay loaded, as values that it keeps or assigns may be constants
        of it.  Raises DplError, Exit, KeyboardInterrupt."""
        running = start(loaded, ())
        stopped = self.wait(running)
        match running.record.code:
            case Failure.NONE:
                pass
            case Failure.EXIT:
                raise Exit(running.record.a)
            case Failure.DEPTH if stopped:
                raise KeyboardInterrupt
            case _:
                raise failure([(unit.compiled.code, loaded.start)], running.record, unit.sites)

    def load(self, unit: SessionUnit, instead: Mapping[str, str] = NOTHING) -> Loaded:
        """Loads a unit beside the others.  `instead` renames some of the cells that it uses."""
        require_externs(unit.sites)
        self.count += 1
        cells = {name: self.cell(instead.get(name, name), size) for name, size in unit.cells.items()}
        return LoadedUnit(self.jit, f"unit {self.count}", unit.compiled.code, RUNTIME, cells)

    def cell(self, name: str, size: int) -> int:
        """The address of the cell of that name, which is made at its first use."""
        return ctypes.addressof(self.cells.setdefault(name, cell(size)))

    def wait(self, running: Running) -> bool:
        """Waits for the end; whether Ctrl-C was pressed."""
        stopped = False
        while not running.done.is_set():
            try:
                running.done.wait(0.1)
                if stopped:  # repeatedly, as the program sets the limit when it begins
                    c_int64.from_address(self.runtime[LIMIT]).value = -1
            except KeyboardInterrupt:
                stopped = True
        return stopped


def cell(size: int) -> ctypes.Array:
    """A cell that is never freed: {owners, content}."""
    memory = (c_int64 * (1 + (size + 7) // 8))()
    memory[0] = FOREVER
    return memory
