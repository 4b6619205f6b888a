"""Compiled -> a program that can be loaded: the object code is linked with the runtime library."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from dpl.regex import regex

from dplc.machine.llvm.versions import has_versions, mixed, plain, quick, sizes, without_places
from dplc.machine.object import elf
from dplc.machine.object.assemble import assemble
from dplc.machine.object.compiled import Compiled
from dplc.machine.object.image import Image
from dplc.machine.object.link import link, link_replaceable
from dplc.machine.run.execute import BEGUN, ENTRY, FLUSH, LAPACK
from dplc.machine.run.program import Program
from dplc.machine.runtime import shared
from dplc.machine.runtime.elementary import variants

AWAITS = "rt.await_round"  # where threads are that have nothing to do (`rt/pool.rt`)
WATCHED = "rt.watched"  # what is known of blocks of memory (`rt/watched.os.rt`)
RUNTIME = regex(r"\n(?:declare [^@\n]*)?@(rt\.[\w.]+)(?:\(| = external )")


def linked(compiled: Compiled, watched: bool = False, placed: bool = False) -> Program:
    """The program; one that is watched has its own library.  The image has the symbols that the profiler asks for."""
    objects = [compiled.code] if watched else [compiled.code, shared.code()]
    image = link(objects, (ENTRY, FLUSH, LAPACK, BEGUN, *([WATCHED] if watched else [AWAITS] if placed else [])))
    return Program(image, compiled.code, compiled.sites, compiled.warnings)


def length(symbol: str) -> int:
    """The bytes of a function of the runtime library."""
    return next(known.size for known in elf.read(shared.code()).symbols if known.name == symbol)


def quickly_linked(text: str, sites: str) -> Program:
    """The quick version of the program with this text, or the only one if nothing in it repays optimising."""
    inlined = shared.shared().texts
    if not has_versions(text):
        return linked(Compiled(assemble(plain(text, inlined), most=0), sites))
    later = zlib.compress(text.encode("utf-8", "surrogatepass"), level=1)
    code = assemble(without_places(quick(text, inlined)), most=0)
    return Program(replaceable(code, text), code, sites, text=later, lines=sizes(text))


def better(program: Program, hot: Sequence[str]) -> Program:
    """A version of the program in which these functions are optimised, too."""
    text = zlib.decompress(program.text).decode("utf-8", "surrogatepass")
    hot = sorted({*program.hot, *hot})
    code = assemble(mixed(text, hot), flat=True)
    return Program(replaceable(code, text), code, program.sites, program.warnings, program.text, program.lines, hot,
                   program.reads_arguments)  # fmt: skip


def replaceable(code: bytes, text: str) -> Image:
    """The image of a version, with all of the runtime that other versions of this text may call."""
    return link_replaceable([code, shared.code()], [*RUNTIME.findall(text), *variants(text)])
