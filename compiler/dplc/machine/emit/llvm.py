"""flat (fused, with dup and drop) -> the LLVM text of a module that runs on this machine."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.machine.emit.program import emit_program
from dplc.machine.failure.failures import Sites
from dplc.machine.object.assemble import module
from dplc.machine.runtime import shared


def emit_text(program: f.Program, counting: bool = False, placed: bool = False) -> tuple[str, Sites]:
    """The text of the module, in two versions, and the sites where it may fail.  A `counting` program counts its
    operations and allocated bytes; it has one version.  If `placed`, every instruction knows its site."""
    text, sites = emit_program(program, shared.mentioned, counting, versions=not counting, placed=placed)
    return module(text), sites
