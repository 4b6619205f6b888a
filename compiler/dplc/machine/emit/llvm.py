"""flat (fused, with dup and drop) -> the LLVM text of a module that runs on this machine."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.machine.emit.program import emit_program
from dplc.machine.failure.failures import Sites
from dplc.machine.object.assemble import module
from dplc.machine.runtime import library, shared


def emit_text(
    program: f.Program, counting: bool = False, placed: bool = False, watched: bool = False
) -> tuple[str, Sites]:
    """The text of the module, in two versions, and the sites where it may fail.  A `counting` program counts its
    operations and allocated bytes; it has one version.  If `placed`, every instruction knows its site.  If `watched`,
    the text has the whole library, in which the blocks of memory know who made them."""
    if watched:
        text, sites = emit_program(program, library.watched, placed=placed)
        return module(text), sites
    text, sites = emit_program(program, shared.mentioned, counting, versions=not counting, placed=placed)
    return module(text), sites
