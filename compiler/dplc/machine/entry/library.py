"""flat -> LLVM text of a library: the program, its export wrappers, and the failure tables.

    int32_t model_f(...)           an exported function: 0, or the code of the failure
    const char *model_message()    the message of this thread's last failure
    void model_free(void *)        frees memory that a function has returned

For Python, `OWN` precedes these names, so that a program may export functions called `message` and `free`; and there is

    void model_0watch(int32_t)     whether Ctrl-C stops this thread's next calls

Each thread has its own runtime state and its own copy of the program's definitions, so that threads may call at the
same time.  The first call of a thread evaluates the definitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.regex import regex

from dplc.flat import term as f
from dplc.flat.local_names import LocalNames
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every
from dplc.interface import Export
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.unit import Unit
from dplc.machine.emit.program import emit_program
from dplc.machine.entry import lapack_link
from dplc.machine.entry.exports import ExportWrapper
from dplc.machine.failure.failures import Sites
from dplc.machine.failure.tables import POINTERS, tables
from dplc.machine.llvm.target import Target
from dplc.machine.object.assemble import module
from dplc.machine.runtime import library

# every variable belongs to a thread, except those of the process, such as signal handlers
WRITABLE = regex(r"(?m)^(@(?!rt\.process_)\S+|@\"[^\"]*\") = internal global ")

OWN = "0"  # no exported name begins with a digit
POSIX = ("linux", "musl", "macos")
NO_ENDING = """
define internal void @"dpl begin thread"(ptr %stack) {
  ret void
}
"""
# a thread's runtime state is freed when the thread ends; those of the pool end before their code is unloaded
ENDING = """
@"dpl key" = private global i64 0
%call = type { i32, ptr, ptr }
@llvm.global_ctors = appending global [1 x %call] [%call { i32 65535, ptr @"dpl load", ptr null }]
@llvm.global_dtors = appending global [1 x %call] [%call { i32 65535, ptr @"dpl unload", ptr null }]
declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_key_delete(i64)
declare i32 @pthread_setspecific(i64, ptr)
define internal void @"dpl load"() {
  call i32 @pthread_key_create(ptr @"dpl key", ptr @rt.end_thread)
  ret void
}
define internal void @"dpl unload"() {
  %key = load i64, ptr @"dpl key"
  call i32 @pthread_key_delete(i64 %key)
  call void @rt.end_workers()
  ret void
}
define internal void @"dpl begin thread"(ptr %stack) {
  %key = load i64, ptr @"dpl key"
  call i32 @pthread_setspecific(i64 %key, ptr %stack)
  ret void
}
"""
WATCH = """
define void @PREFIXwatch(i32 %on) {
  %yes = icmp ne i32 %on, 0
  store i1 %yes, ptr @rt.interruptible
  store ptr @rt.stack_limit, ptr @rt.process_limit
  ret void
}
"""
FOR_JIT = """
define void @PREFIXend() {
  call void @rt.end_thread(ptr null)
  call void @rt.end_workers()
  ret void
}
define void @PREFIXlapack(ptr %find) {
  store ptr %find, ptr @rt.lapack
  ret void
}
"""
HOLDING = """
define void @PREFIXwant(ptr %which) {
  store ptr %which, ptr @rt.device_wanted
  ret void
}
define i32 @PREFIXrequest(ptr %frame) {
  call void @rt.device_enter()
  %code = call i32 @rt.called(ptr @rt.device_request, ptr %frame, ptr @"dpl program", POINTERS)
  ret i32 %code
}
"""


def library_text(
    program: f.Program,
    exports: Sequence[Export],
    prefix: str,
    target: Target,
    per_thread: bool = True,
    debug: LocalNames | None = None,
    python: bool = False,
    device: Device | None = None,
) -> tuple[str, Sites]:
    """The text of the module, and the sites where it may fail.  Unless `per_thread`, all threads share one runtime
    state and must take turns.  For `python`, calls can be interrupted; with a `device`, callers hold arrays."""
    more = ENDING if per_thread and target.system in POSIX else NO_ENDING
    own = f"{prefix}_{OWN}" if python else f"{prefix}_"
    if target.jit:
        more += FOR_JIT.replace("PREFIX", own)
    if python:
        more += WATCH.replace("PREFIX", own)
    if device:
        more += HOLDING.replace("PREFIX", own).replace("POINTERS", POINTERS)
    more += lapack_link.definitions(program, target)

    start = lapack_link.start(program, target) + ("  call void @rt.keep_memory()\n" if python else "")

    def entry(unit: Unit) -> str:
        return entry_points(unit, exports, prefix, own, start) + more

    text, sites = emit_program(
        program,
        library.library_for(target),
        interruptible=python,
        entry_points=entry,
        debug=debug,
        device=device,
        where=target,
    )
    if per_thread:
        text = WRITABLE.sub(r"\1 = internal thread_local global ", text)
    return module(text + tables(sites), target), sites


def keeps_state(program: f.Program) -> bool:
    """True if the calling thread matters, or how often the definitions are evaluated."""
    makers = (bind.rhs for bind in every(program.fns[program.main].body) if isinstance(bind.rhs, f.Op))
    lasting = Effect.NEW | Effect.OUTPUT | Effect.STORE | Effect.FOREIGN
    return any(OPS[op.op].effects & lasting for op in makers)


def entry_points(unit: Unit, exports: Sequence[Export], prefix: str, own: str, start: str) -> str:
    """Everything that a caller can see: export wrappers and our `own` functions.  `start` runs before the definitions.
    The text calls `dpl begin thread`, which the caller defines."""
    functions = "".join(ExportWrapper(unit, export, prefix).text() for export in exports)
    return f"""
define internal void @"dpl program"(ptr %nothing) {{
  %stack = load ptr, ptr @rt.own_stack
  call void @"dpl begin thread"(ptr %stack)
{start}  call fastcc void {unit.start}() noinline
  ret void
}}
define ptr @{own}message() {{
  %text = call ptr @rt.message()
  ret ptr %text
}}
define void @{own}free(ptr %elements) {{
  call void @rt.take_back(ptr %elements)
  ret void
}}
{functions}"""
