"""Compiled -> a program that can be loaded: the object code is linked with the runtime library."""

from __future__ import annotations

import zlib

from dplc.machine.llvm.versions import final, has_versions, quick
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.object.link import link, link_replaceable
from dplc.machine.run.execute import ENTRY, FLUSH, LAPACK
from dplc.machine.run.program import Program
from dplc.machine.runtime import shared
from dplc.machine.runtime.elementary import variants


def linked(compiled: Compiled) -> Program:
    image = link([compiled.code, shared.code()], (ENTRY, FLUSH, LAPACK))
    return Program(image, compiled.code, compiled.sites, compiled.warnings)


def quickly_linked(text: str, sites: str) -> Program:
    """The quick version of the program with this text, or the only one if nothing in it repays optimising."""
    if not has_versions(text):
        return linked(Compiled(assemble(final(text), most=0), sites))
    code = assemble(quick(text), most=0)
    later = zlib.compress(final(text).encode("utf-8", "surrogatepass"), level=1)
    return Program(link_replaceable(code, shared.code(), variants(text)), code, sites, text=later)
