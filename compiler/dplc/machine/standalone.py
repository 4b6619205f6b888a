"""flat -> LLVM text of an executable: the program, `main`, and what its failures say.

int main(int argc, char **argv)     runs the program by `rt/executable.rt` and returns the status to leave with
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dplc.flat import term as f
from dplc.machine import codegen, runtime
from dplc.machine.catalogue import tables
from dplc.machine.emit import emit_program
from dplc.machine.emit_function import symbol
from dplc.machine.failures import Sites
from dplc.machine.target import Target

if TYPE_CHECKING:
    from dplc.machine.emit import Unit

TELLING = 'ptr @"dpl kinds", ptr @"dpl places", ptr @"dpl texts"'


def executable_text(program: f.Program, target: Target) -> tuple[str, Sites]:
    """The module's text, and its sites."""
    text, sites = emit_program(program, runtime.library_for(target), door=main)
    return codegen.module(text + tables(sites), target), sites


def main(unit: Unit) -> str:
    return f"""
define i32 @main(i32 %argc, ptr %argv) {{
  %count = sext i32 %argc to i64
  %status = call i32 @rt.executable(i64 %count, ptr %argv, ptr @"dpl program", {TELLING})
  ret i32 %status
}}
define internal void @"dpl program"(ptr %nothing) {{
  call fastcc void {symbol(unit.program.main)}()
  ret void
}}
"""
