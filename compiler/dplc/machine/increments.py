"""Programs that grow: each increment is compiled by itself, loaded beside those before, and run once.

What later increments need of an earlier one is kept in cells of the process (`state` of flat), which all find under
their names; so memory is one heap, the runtime library's, which is loaded once.  An increment can be stopped: its
functions and loops ask whether there is stack left, and there is none any more.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import c_int64

import llvmlite.binding as llvm

from dplc.flat import term as f
from dplc.machine import shared
from dplc.machine.codegen import Compiled, assemble, module
from dplc.machine.emit import FOREVER, emit_program
from dplc.machine.failures import Failure, Sites
from dplc.machine.jit import (
    LAPACK,
    Loaded,
    Running,
    failure,
    new_jit,
    offer_lapack,
    require_externs,
    start,
)

STATE = re.compile(r'(?m)^@"(state [^"]*)" = internal (global \{ i64, i64, \[(\d+) x i8\] \}) .*$')
RUNTIME, LIMIT = "runtime", "rt.stack_limit"


class Exit(Exception):
    """An increment ended the program, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Increments:
    """A process's program so far."""

    def __init__(self) -> None:
        self.jit = new_jit()
        library = llvm.JITLibraryBuilder().add_object_img(shared.code()).add_current_process()
        self.runtime = library.export_symbol(LAPACK).export_symbol(LIMIT).link(self.jit, RUNTIME)
        offer_lapack(self.runtime)
        self.cells: dict[str, ctypes.Array] = {}
        self.lasting: list[Loaded] = []
        self.count = 0

    def run(self, program: f.Program, lasting: bool) -> None:
        """Compiles and runs a program; `lasting` if what it keeps may be constants of its own.  Raises DplError, Exit,
        KeyboardInterrupt."""
        text, sites = emit_program(program, shared.mentioned, patient=False)
        for name, _, size in STATE.findall(text):
            self.cells.setdefault(name, cell(int(size)))
        compiled = Compiled(assemble(module(STATE.sub(r'@"\1" = external \2, align 16', text))), sites.to_json())
        increment = self.load(compiled, sites)
        if lasting:
            self.lasting.append(increment)
        running = start(increment, ())
        stopped = self.wait(running)
        match running.record.code:
            case Failure.NONE:
                pass
            case Failure.EXIT:
                raise Exit(running.record.a)
            case Failure.DEPTH if stopped:
                raise KeyboardInterrupt
            case _:
                raise failure(compiled, increment, running.record, sites)

    def load(self, compiled: Compiled, sites: Sites) -> Loaded:
        """Beside all that there is."""
        require_externs(sites)
        self.count += 1
        library = llvm.JITLibraryBuilder().add_object_img(compiled.code).add_jit_library(RUNTIME).add_current_process()
        for name, memory in self.cells.items():
            library = library.import_symbol(name, ctypes.addressof(memory))
        return Loaded(self.jit, library, f"increment {self.count}")

    def wait(self, running: Running) -> bool:
        """For the end; whether Ctrl-C brought it about, or tried to."""
        stopped = False
        while not running.done.is_set():
            try:
                running.done.wait(0.1)
                if stopped:  # again and again: the program sets the limit when it begins
                    c_int64.from_address(self.runtime[LIMIT]).value = -1
            except KeyboardInterrupt:
                stopped = True
        return stopped


def cell(size: int) -> ctypes.Array:
    """A cell that is never freed: {owners, spare, content}, at a multiple of 16."""
    memory = (c_int64 * (2 + (size + 7) // 8))()
    memory[0] = FOREVER
    return memory
