"""flat -> LLVM text of an executable: the program, `main`, and the failure tables.

int main(int argc, char **argv)     runs the program by `rt/executable.rt` and returns its exit status
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.local_names import LocalNames
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.unit import Unit
from dplc.machine.emit.program import emit_program
from dplc.machine.entry import lapack_link
from dplc.machine.failure.failures import Sites
from dplc.machine.failure.tables import POINTERS, tables
from dplc.machine.llvm.target import Target
from dplc.machine.object.assemble import module
from dplc.machine.runtime import library


def executable_text(
    program: f.Program, target: Target, debug: LocalNames | None = None, device: Device | None = None
) -> tuple[str, Sites]:
    """The text of the module, and the sites where it may fail.  With a `device`, parallel loops may run there."""

    def entry(unit: Unit) -> str:
        return main(unit, target)

    where = library.library_for(target)
    text, sites = emit_program(program, where, entry_points=entry, debug=debug, device=device, where=target)
    text += tables(sites)
    return module(narrow(text) if target.arch == "wasm32" else text, target), sites


NARROW = """
declare void @llvm.memcpy.p0.p0.i32(ptr, ptr, i32, i1 immarg)
declare void @llvm.memmove.p0.p0.i32(ptr, ptr, i32, i1 immarg)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1 immarg)
define internal void @copy64(ptr %to, ptr %from, i64 %size, i1 %volatile) alwaysinline {
  %narrow = trunc i64 %size to i32
  call void @llvm.memcpy.p0.p0.i32(ptr %to, ptr %from, i32 %narrow, i1 false)
  ret void
}
define internal void @move64(ptr %to, ptr %from, i64 %size, i1 %volatile) alwaysinline {
  %narrow = trunc i64 %size to i32
  call void @llvm.memmove.p0.p0.i32(ptr %to, ptr %from, i32 %narrow, i1 false)
  ret void
}
define internal void @fill64(ptr %to, i8 %byte, i64 %size, i1 %volatile) alwaysinline {
  %narrow = trunc i64 %size to i32
  call void @llvm.memset.p0.i32(ptr %to, i8 %byte, i32 %narrow, i1 false)
  ret void
}
"""


def narrow(text: str) -> str:
    """Adapts the text to WebAssembly: sizes of memory have 32 bits, `main` has another name, and there are no
    guaranteed tail calls."""
    for wide, ours in (("memcpy.p0.p0", "copy"), ("memmove.p0.p0", "move"), ("memset.p0", "fill")):
        text = text.replace(f"@llvm.{wide}.i64(", f"@{ours}64(")
    return text.replace("define i32 @main(", "define i32 @__main_argc_argv(").replace("tailcc", "fastcc") + NARROW


def main(unit: Unit, target: Target) -> str:
    program = unit.program
    asked = "" if unit.device else "  call void @rt.has_no_kernels()\n"
    return f"""
define i32 @main(i32 %argc, ptr %argv) {{
  %count = sext i32 %argc to i64
  %status = call i32 @rt.executable(i64 %count, ptr %argv, ptr @"dpl program", {POINTERS})
  ret i32 %status
}}
define internal void @"dpl program"(ptr %nothing) {{
{lapack_link.start(program, target)}{asked}  call fastcc void {unit.start}() noinline
  ret void
}}
{lapack_link.definitions(program, target)}"""
