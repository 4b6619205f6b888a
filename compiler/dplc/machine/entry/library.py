"""flat -> LLVM text of a library: the program, its exported functions, and what its failures say.

    int32_t model_f(...)           an exported function: 0, or the kind of failure
    const char *model_message()    what the last failure of this thread was
    void model_free(void *)        frees what a function has given

For Python, `OWN` stands before these names, so that a program may export them; and there is

    void model_0watch(int32_t)     whether Ctrl-C is to stop the calls to come, of this thread

Each thread is a world of its own: whatever the program keeps is kept for each of them, so that several may call at
once.  The first call of a thread evaluates the program's definitions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dplc.flat import term as f
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import every
from dplc.interface import Export
from dplc.machine.emit.function import symbol
from dplc.machine.emit.program import emit_program
from dplc.machine.entry.exports import Exported
from dplc.machine.failure.failures import Sites
from dplc.machine.failure.tables import tables
from dplc.machine.llvm.target import Target
from dplc.machine.object import object
from dplc.machine.runtime import lapack_link, library

if TYPE_CHECKING:
    from dplc.machine.emit.program import Unit

# but for what is the process's, as signals are
WRITABLE = re.compile(r"(?m)^(@(?!rt\.process_)\S+|@\"[^\"]*\") = internal global ")

OWN = "0"  # no exported name begins with it
POSIX = ("linux", "musl", "macos")
NO_ENDING = """
define internal void @"dpl begin world"(ptr %stack) {
  ret void
}
"""
# what a thread has for itself goes when it ends
ENDING = """
@"dpl key" = private global i64 0
%call = type { i32, ptr, ptr }
@llvm.global_ctors = appending global [1 x %call] [%call { i32 65535, ptr @"dpl load", ptr null }]
@llvm.global_dtors = appending global [1 x %call] [%call { i32 65535, ptr @"dpl unload", ptr null }]
declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_key_delete(i64)
declare i32 @pthread_setspecific(i64, ptr)
define internal void @"dpl load"() {
  call i32 @pthread_key_create(ptr @"dpl key", ptr @rt.end_world)
  ret void
}
define internal void @"dpl unload"() {
  %key = load i64, ptr @"dpl key"
  call i32 @pthread_key_delete(i64 %key)
  ret void
}
define internal void @"dpl begin world"(ptr %stack) {
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
  call void @rt.end_world(ptr null)
  ret void
}
define void @PREFIXlapack(ptr %find) {
  store ptr %find, ptr @rt.lapack
  ret void
}
"""


def library_text(
    program: f.Program,
    exports: Sequence[Export],
    prefix: str,
    target: Target,
    worlds: bool = True,
    debug: bool = False,
    python: bool = False,
) -> tuple[str, Sites]:
    """The module's text, and its sites.  Without `worlds`, callers take turns.  For `python`, calls can be stopped."""
    more = ENDING if worlds and target.system in POSIX else NO_ENDING
    own = f"{prefix}_{OWN}" if python else f"{prefix}_"
    if target.jit:
        more += FOR_JIT.replace("PREFIX", own)
    if python:
        more += WATCH.replace("PREFIX", own)
    more += lapack_link.definitions(program, target)

    def door(unit: Unit) -> str:
        return doors(unit, exports, prefix, own, lapack_link.start(program, target)) + more

    text, sites = emit_program(program, library.library_for(target), patient=not python, door=door, debug=debug)
    if worlds:
        text = WRITABLE.sub(r"\1 = internal thread_local global ", text)
    return object.module(text + tables(sites), target), sites


def keeps_state(program: f.Program) -> bool:
    """Whether it makes a difference who calls, and how often a program's definitions are evaluated."""
    makers = (bind.rhs for bind in every(program.fns[program.main].body) if isinstance(bind.rhs, f.Op))
    lasting = Effect.NEW | Effect.OUTPUT | Effect.STORE | Effect.FOREIGN
    return any(OPS[op.op].effects & lasting for op in makers)


def doors(unit: Unit, exports: Sequence[Export], prefix: str, own: str, start: str) -> str:
    """All that others can call, our `own` functions too; `start` is done first.  It mentions `dpl begin world`, which
    is still to be written."""
    functions = "".join(Exported(unit, export, prefix).text() for export in exports)
    return f"""
define internal void @"dpl program"(ptr %nothing) {{
  %stack = load ptr, ptr @rt.own_stack
  call void @"dpl begin world"(ptr %stack)
{start}  call fastcc void {symbol(unit.program.main)}() noinline
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
