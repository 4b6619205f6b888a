"""Programs that grow: each increment is compiled by itself, loaded beside those before, and run once.

What later increments need of an earlier one is kept in cells of the process (`state` of flat), which all find under
their names; so memory is one heap, the runtime library's, which is loaded once.  An increment can be stopped: its
functions and loops ask whether there is stack left, and there is none any more.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import c_int32, c_int64, c_void_p

import llvmlite.binding as llvm

from dplc.flat import term as f
from dplc.machine import shared, target
from dplc.machine.codegen import Compiled, assemble, module
from dplc.machine.emit import FOREVER, emit_program
from dplc.machine.failures import Failure, Sites, missing
from dplc.machine.jit import ENTRY, FLUSH, LAPACK, Running, failure, find_lapack, start

STATE = re.compile(r'(?m)^@"(state [^"]*)" = internal (global \{ i64, i64, \[(\d+) x i8\] \}) .*$')
LIMIT = "rt.stack_limit"
BITS = 64


class Exit(Exception):
    """An increment ended the program, with an exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Increments:
    """A process's program so far."""

    def __init__(self) -> None:
        target.start()
        llvm.load_library_permanently("libm.so.6")
        self.jit = llvm.create_lljit_compiler(target.host(), use_jit_link=False)
        library = llvm.JITLibraryBuilder().add_object_img(shared.code()).add_current_process()
        for name in (LAPACK, LIMIT):
            library = library.export_symbol(name)
        self.runtime = library.link(self.jit, "runtime")
        self.finder = ctypes.CFUNCTYPE(None, c_void_p)(find_lapack)
        c_void_p.from_address(self.runtime[LAPACK]).value = ctypes.cast(self.finder, c_void_p).value
        self.cells: dict[str, ctypes.Array] = {}
        self.lasting: list[Increment] = []
        self.count = 0

    def run(self, program: f.Program, lasting: bool) -> None:
        """Compiles and runs a program; `lasting` if what it keeps may be constants of its own.  Raises DplError, Exit,
        KeyboardInterrupt."""
        text, sites = emit_program(program, shared.mentioned, patient=False)
        for name, _, size in STATE.findall(text):
            self.cells.setdefault(name, cell(int(size)))
        compiled = Compiled(assemble(module(STATE.sub(r'@"\1" = external \2, align 16', text))), sites.to_json())
        increment = Increment(self, compiled, sites)
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


class Increment:
    """Object code in memory, beside all else."""

    def __init__(self, up: Increments, compiled: Compiled, sites: Sites) -> None:
        for symbol in sites.externs:
            if not llvm.address_of_symbol(symbol):
                raise missing(symbol, sites)
        up.count += 1
        library = llvm.JITLibraryBuilder().add_object_img(compiled.code).add_jit_library("runtime")
        library = library.add_current_process().export_symbol(ENTRY).export_symbol(FLUSH)
        for name, memory in up.cells.items():
            library = library.import_symbol(name, ctypes.addressof(memory))
        self.tracker = library.link(up.jit, f"increment {up.count}")
        entry = ctypes.CFUNCTYPE(c_int64, c_int64, c_void_p, c_int32, c_int64, c_void_p)
        self.entry = entry(self.tracker[ENTRY])
        self.flush = ctypes.CFUNCTYPE(None)(self.tracker[FLUSH])


def cell(size: int) -> ctypes.Array:
    """A cell that is never freed: {owners, spare, content}, at a multiple of 16."""
    memory = (c_int64 * (2 + (size + 7) // 8))()
    memory[0] = FOREVER
    return memory
