"""A program of flat (with dup and drop) -> the LLVM text of a module.

    fn f(x: f64, n: i64) -> (f64)                 define internal fastcc double @"f"(double %x, i64 %n) {
      y = mul x x                          =>       %1 = fmul double %x, %x
      return y                                      ret double %1 }

This file writes the module around the functions: prelude, constants, the entry.  `function.py` writes functions,
`operations/` single operations, `par.py` parallel loops.  They call the runtime library.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.local_names import LocalNames
from dplc.machine.emit.function import FunctionEmitter
from dplc.machine.emit.module import layout
from dplc.machine.emit.module.debug import DebugInfo
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.emitter import BYTES, NEVER, OPERATIONS
from dplc.machine.emit.module.memory import FREED, Droppers
from dplc.machine.emit.module.unit import Unit, symbol
from dplc.machine.failure.failures import Sites
from dplc.machine.llvm import target
from dplc.machine.llvm.target import Target
from dplc.machine.runtime.shapes import Vectors
from dplc.passes.kernels.frequency import Frequency
from dplc.passes.kernels.independence import Independence
from dplc.passes.recursion.modulo_cons import with_holes

ENTRY = "dpl_entry"
STACK_MARGIN = 256 * 1024  # bytes below the stack limit, for the runtime
HUGE_PAGE, HUGE_PAGES = 2 << 20, 14  # a size, and MADV_HUGEPAGE: deep recursion then causes fewer page faults


def emit_program(
    program: f.Program,
    library: Callable[[str], str],
    counting: bool = False,
    interruptible: bool = False,
    entry_points: Callable[[Unit], str] | None = None,
    debug: LocalNames | None = None,
    versions: bool = False,
    device: Device | None = None,
    placed: bool = False,
    where: Target | None = None,
) -> tuple[str, Sites]:
    """The whole module, and the sites where it may fail.  `library` gives the definitions of the runtime's symbols in a
    text.  `entry_points` writes the functions that enter the program; by default, the one for the driver.  If
    `interruptible`, loops poll for an interrupt (`interrupts.py`).  With names of local variables, `debug`, there is
    debug information for debuggers.  With `versions`, the text has two versions of the program (`llvm/versions.py`).
    With a `device`, Pars may run there (`launches/launch.py`).  If `placed`, every instruction knows its site.  `where`
    is the target, by default this machine."""
    group, looping = groups(program)
    frequency = Frequency(program)
    unit = Unit(program, Sites(), Droppers(program), group, looping, with_holes(program), Independence(program),
                frequency.cold)  # fmt: skip
    unit.droppers.counting = counting
    unit.counting, unit.interruptible, unit.device, unit.placed = counting, interruptible, device, placed
    unit.vector_bytes = 0 if counting else Vectors.of((where or target.here()).flags).bytes
    unit.debug = None if debug is None else DebugInfo(unit.metadata, program.main, debug)
    if versions:
        unit.kernels, unit.replaceable = frequency.kernels(), frequency.replaceable()
    unit.sites.number(f.NOWHERE)  # site 0 is an unknown place
    functions = [FunctionEmitter(unit, fn).text() for fn in program.fns.values()]
    entries = entry_points(unit) if entry_points else entry(unit.start)
    if device:
        functions.append(device.started(symbol(program.main), unit.arrays))
    parts = (entries, *functions, *unit.helpers.values(), unit.droppers.text(), *unit.globals)
    counters = "".join(f"{name} = internal global i64 0\n" for name in (OPERATIONS, BYTES, FREED)) if counting else ""
    text = "".join((counters, *parts, *unit.externs.values(), *unit.states.values(), *unit.nodes))
    unit.sites.labels = {fn.name: fn.label for fn in program.fns.values() if fn.label}
    layout.forget()
    prelude = PRELUDE.replace("LineTablesOnly", "FullDebug") if unit.debug else PRELUDE
    return prelude + text + library(text), unit.sites


PRELUDE = f"""
!0 = !{{!"branch_weights", i32 1000000, i32 1}}
!1 = distinct !{{}}
!2 = !{{!"llvm.loop.parallel_accesses", !1}}
!3 = !{{i32 2, !"Debug Info Version", i32 3}}
!4 = !{{i32 7, !"Dwarf Version", i32 4}}
!5 = !DIFile(filename: "program", directory: "")
!6 = distinct !DICompileUnit(language: DW_LANG_C, file: !5, isOptimized: true, emissionKind: LineTablesOnly)
!7 = !DISubroutineType(types: !{{}})
!llvm.module.flags = !{{!3, !4}}
!llvm.dbg.cu = !{{!6}}
@"empty" = private unnamed_addr constant [1 x i8] zeroinitializer
{NEVER} = internal constant [2 x i64] zeroinitializer

"""


def entry(main: str) -> str:
    """The function that the driver calls, on a thread whose stack has `stack` bytes: 0, or the code of the failure."""
    return f"""
define i64 @{ENTRY}(i64 %argc, ptr %argv, i32 %tty, i64 %stack, ptr %record) noinline {{
entry:
  %here = call ptr @llvm.frameaddress.p0(i32 0)
  %top = ptrtoint ptr %here to i64
  %bottom = sub i64 %top, %stack
  %limit = add i64 %bottom, {STACK_MARGIN}
  store i64 %limit, ptr @rt.stack_limit
  store ptr %here, ptr @rt.bottom
  %next = add i64 %limit, {HUGE_PAGE}
  %low = and i64 %next, {-HUGE_PAGE}
  %below = inttoptr i64 %low to ptr
  %size = sub i64 %stack, {2 * HUGE_PAGE}
  %advised = call i32 @madvise(ptr %below, i64 %size, i32 {HUGE_PAGES})
  call void @rt.start(i64 %argc, ptr %argv, i32 %tty)
  %again = call i32 @_setjmp(ptr @rt.jump, ptr null) returns_twice
  %first = icmp eq i32 %again, 0
  br i1 %first, label %run, label %failed
run:
  call fastcc void {main}() noinline
  call void @rt.flush()
  call void @rt.unwatch(ptr @rt.out)
  call void @rt.end_workers()
  ret i64 0
failed:
  call void @rt.unwatch(ptr @rt.out)
  call void @rt.end_workers()
  %code = load i64, ptr @rt.failure
  call void @llvm.memcpy.p0.p0.i64(ptr %record, ptr @rt.failure, i64 48, i1 false)
  %count = load i64, ptr @rt.call_count
  %calls = getelementptr i8, ptr %record, i64 48
  store i64 %count, ptr %calls
  %addresses = getelementptr i8, ptr %record, i64 56
  call void @llvm.memcpy.p0.p0.i64(ptr %addresses, ptr @rt.calls, i64 1024, i1 false)
  ret i64 %code
}}
define void @dpl_flush() {{
  call void @rt.send_now(ptr @rt.out)
  ret void
}}
"""
