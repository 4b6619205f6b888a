"""flat (with dup and drop) -> LLVM text.

    fn f(x: f64, n: i64) -> (f64)                 define internal fastcc double @"f"(double %x, i64 %n) {
      y = mul x x                          =>       %1 = fmul double %x, %x
      return y                                      ret double %1 }

This file is the frame: functions, constants, the entry.  `emit_function` writes bodies, `emit_ops` and its neighbours
single operations, `emit_map` fused loops; what they call is found in the runtime library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.machine.emit.constants import FOREVER, cell
from dplc.machine.emit.emitter import BYTES, NEVER, OPERATIONS, escape
from dplc.machine.emit.function import FunctionEmitter, many, symbol
from dplc.machine.emit.memory import Droppers
from dplc.machine.failure.debug import DebugInfo
from dplc.machine.failure.failures import Sites
from dplc.machine.llvm.layout import leaves
from dplc.machine.llvm.writer import Values, result_type
from dplc.passes.recursion.modulo_cons import with_holes

ENTRY = "dpl_entry"
FIRST_NODE = 10  # of the metadata; the others are in the prelude
STACK_MARGIN = 256 * 1024  # what the runtime may use below the limit
HUGE_PAGE, HUGE_PAGES = 2 << 20, 14  # a size, and advice to the system: deep recursion touches less pages then


@dataclass(slots=True)
class Unit:
    """What the functions of one program share."""

    program: f.Program
    sites: Sites
    droppers: Droppers
    group: dict[str, int]  # functions that call each other share a number
    tailcc: set[int]  # groups whose calls in tail position take no stack
    holed: set[str]  # functions that are told where their result is wanted (`passes/recursion/modulo_cons.py`)
    debug: DebugInfo | None = None  # what debuggers want to know, if they are to
    counting: bool = False  # whether allocated bytes are counted (`flat/operation_counts.py`)
    patient: bool = True  # whether loops need not ask if they are to stop
    globals: list[str] = field(default_factory=list)
    arrays: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # what is in constant ones, by address
    helpers: dict[str, str] = field(default_factory=dict)  # functions out of line, by name
    states: dict[str, str] = field(default_factory=dict)  # cells that last, by symbol
    externs: dict[str, str] = field(default_factory=dict)  # declarations of C functions, by symbol
    nodes: list[str] = field(default_factory=list)  # metadata
    _strings: dict[bytes, str] = field(default_factory=dict)
    _locations: dict[tuple[str, int], str] = field(default_factory=dict)

    def string(self, text: str) -> tuple[str, int]:
        """The address and length of a constant string."""
        data = text.encode("utf-8", "surrogatepass")
        if data not in self._strings:
            self._strings[data] = self.constant(f"[{len(data)} x i8]", f'c"{escape(data)}"', 1) if data else '@"empty"'
        return self._strings[data], len(data)

    def constant(self, llvm_type: str, value: str, align: int = 64) -> str:
        """A constant in memory: its address."""
        name = f'@"constant {len(self.globals)}"'
        self.globals.append(f"{name} = private unnamed_addr constant {llvm_type} {value}, align {align}\n")
        return name

    def elements(self, kind: str, items: list[str]) -> str:
        """The elements of a constant array: their address."""
        address = self.constant(f"[{len(items)} x {kind}]", f"[{', '.join(items)}]")
        self.arrays[address] = kind, items
        return address

    def cell(self, tag: int, payload: f.Type, values: Values) -> str:
        """A constructor of constants: its address.  Owners come and go, so it is no constant itself."""
        name, (kind, text) = f'@"constant {len(self.globals)}"', cell(tag, payload, values)
        self.globals.append(f"{name} = internal global {kind} {text}, align 16\n")
        return name

    def state(self, name: str, size: int) -> str:
        """The address of a cell that lasts as long as the program."""
        symbol = f'@"state {escape(name.encode())}"'
        self.states[symbol] = f"{symbol} = internal global {{ i64, i64, [{size} x i8] }} {{ i64 {FOREVER}, i64 0,"
        self.states[symbol] += f" [{size} x i8] zeroinitializer }}, align 16\n"
        return symbol

    def metadata(self, text: str) -> str:
        """A node: its number.  `SELF` in the text stands for itself."""
        number = f"!{len(self.nodes) + FIRST_NODE}"
        self.nodes.append(f"{number} = {text.replace('SELF', number)}\n")
        return number

    def parallel(self) -> str:
        """Marks a loop's back edge: accesses marked ACCESS in different steps do not meet."""
        return f", !llvm.loop {self.metadata('distinct !{SELF, !2}')}"

    def location(self, scope: str, line: int) -> str:
        """Marks a call with its place: `line` is the number of a site, plus one."""
        key = scope, line
        if key not in self._locations:
            self._locations[key] = self.metadata(f"!DILocation(line: {line}, scope: {scope})")
        return f", !dbg {self._locations[key]}"

    def convention(self, name: str) -> str:
        """The calling convention of a function: `tailcc` where calls in tail position must take no stack."""
        return "tailcc" if self.group[name] in self.tailcc else "fastcc"

    def indirect(self, name: str) -> bool:
        """Whether a function stores its results through a pointer, its first parameter."""
        return name in self.holed or many(f.Tup(self.program.fns[name].results))

    def returned(self, name: str) -> str:
        """What a function returns, in LLVM's words."""
        return "void" if self.indirect(name) else result_type(leaves(f.Tup(self.program.fns[name].results)))


def emit_program(
    program: f.Program,
    library: Callable[[str], str],
    counting: bool = False,
    patient: bool = True,
    door: Callable[[Unit], str] | None = None,
    debug: bool = False,
) -> tuple[str, Sites]:
    """The whole module and the places that may fail.  `library` has the runtime's part of what a text mentions, `door`
    writes how the program is entered, if that is not by the driver; unless `patient`, loops ask whether they are to
    stop (`increments.py`); `debug` says whether debuggers are told of it."""
    group, looping = groups(program)
    unit = Unit(program, Sites(), Droppers(program), group, looping, with_holes(program))
    unit.counting, unit.patient = counting, patient
    unit.debug = DebugInfo(unit) if debug else None
    unit.sites.number(f.NOWHERE)  # number 0
    functions = [FunctionEmitter(unit, fn).text() for fn in program.fns.values()]
    way_in = door(unit) if door else entry(symbol(program.main))
    parts = (way_in, *functions, *unit.helpers.values(), unit.droppers.text(), *unit.globals)
    counters = "".join(f"{name} = internal global i64 0\n" for name in (OPERATIONS, BYTES)) if counting else ""
    text = "".join((counters, *parts, *unit.externs.values(), *unit.states.values(), *unit.nodes))
    unit.sites.labels = {fn.name: fn.label for fn in program.fns.values() if fn.label}
    prelude = PRELUDE.replace("LineTablesOnly", "FullDebug") if debug else PRELUDE
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
    """What the driver calls, on a thread whose stack has `stack` bytes: 0, or the code of the failure."""
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
  ret i64 0
failed:
  call void @rt.unwatch(ptr @rt.out)
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
