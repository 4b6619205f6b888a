"""The runtime library for device code: symbols -> the LLVM text of what defines them.

`rt/device/` replaces what needs the system or vectors: memory, failures, sums, products.  What a thread of a GPU asks
its hardware for is written here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpl.prims.elementary import VECTORS
from dpl.regex import regex

from dplc.machine.cuda.shuffles import shuffle
from dplc.machine.llvm.types import SCALARS, SIZES
from dplc.machine.rtl.functions import translate
from dplc.machine.rtl.parse import Source
from dplc.machine.runtime import elementary, library
from dplc.machine.runtime.shapes import Vectors

SCALAR = Vectors(0, fused=False)
SIGNED = tuple((ty, SIZES[leaf]) for ty, leaf in SCALARS.items() if ty not in ("bool", "u64"))  # in 64 bits
WHOLE = tuple((ty, SIZES[leaf]) for ty, leaf in SCALARS.items() if leaf[0] == "i" and ty != "bool")
EACH = {**library.EACH, "extrema": SIGNED, "counts": WHOLE}
RECORD, ARENA = "dpl_record", "dpl_arena"  # what the host reads and writes, by cuModuleGetGlobal
GLOBALS = f"""
@{RECORD} = addrspace(1) externally_initialized global [4 x i64] zeroinitializer, align 16
@{ARENA} = addrspace(1) externally_initialized global [2 x i64] zeroinitializer, align 16
"""


def _memory(name: str, number: str) -> str:
    """A function that gives the arena with a number, which another function tells; all have the same size."""
    return f"""
define internal ptr @{name}() alwaysinline nounwind {{
  %base = load i64, ptr addrspace(1) @{ARENA}
  %p = getelementptr i64, ptr addrspace(1) @{ARENA}, i64 1
  %size = load i64, ptr addrspace(1) %p
  %n = call i64 @{number}()
  %before = mul i64 %n, %size
  %own = add i64 %base, %before
  %g = inttoptr i64 %own to ptr addrspace(1)
  %a = addrspacecast ptr addrspace(1) %g to ptr
  ret ptr %a
}}"""


OWN = {
    "rt.record": f"""
define internal ptr @rt.record() alwaysinline nounwind {{
  %p = addrspacecast ptr addrspace(1) @{RECORD} to ptr
  ret ptr %p
}}""",
    "rt.room": f"""
define internal i64 @rt.room() alwaysinline nounwind {{
  %p = getelementptr i64, ptr addrspace(1) @{ARENA}, i64 1
  %size = load i64, ptr addrspace(1) %p
  ret i64 %size
}}""",
    "rt.arena": _memory("rt.arena", "rt.thread"),
    "rt.team_memory": _memory("rt.team_memory", "rt.threads"),  # behind the arenas of all threads
    "rt.team_failed": f"""
define internal i1 @rt.team_failed() alwaysinline nounwind {{
  %f = load atomic i64, ptr addrspace(1) @{RECORD} monotonic, align 8
  %p = getelementptr i64, ptr addrspace(1) @{RECORD}, i64 1
  %m = load atomic i64, ptr addrspace(1) %p monotonic, align 8
  %both = or i64 %f, %m
  %some = icmp ne i64 %both, 0
  ret i1 %some
}}""",
    "rt.thread": """
define internal i64 @rt.thread() alwaysinline nounwind {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %t64 = zext i32 %t to i64
  %b64 = zext i32 %b to i64
  %d64 = zext i32 %d to i64
  %before = mul nuw nsw i64 %b64, %d64
  %i = add nuw nsw i64 %before, %t64
  ret i64 %i
}""",
    "rt.threads": """
define internal i64 @rt.threads() alwaysinline nounwind {
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %g = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %d64 = zext i32 %d to i64
  %g64 = zext i32 %g to i64
  %n = mul nuw nsw i64 %d64, %g64
  ret i64 %n
}""",
    "rt.stop": """
define internal void @rt.stop() alwaysinline nounwind {
  call void @llvm.nvvm.exit()
  ret void
}""",
    "fmod": """
define internal double @fmod(double %x, double %y) alwaysinline nounwind {
  %r = call double @rt.fmod(double %x, double %y)
  ret double %r
}""",
}
GIVEN = regex(r"llvm\.")
LONG = {"pow"}  # elementary functions that are not worth a copy at each call


@cache
def source() -> Source:
    """The library's source, as the device has it."""
    own, whole = Source(), Source()
    for path in sorted((Path(__file__).parents[1] / "rt" / "device").glob("*.rt")):
        text = path.read_text(encoding="utf-8")
        kinds = EACH[path.name.removesuffix(".each.rt")] if path.name.endswith(".each.rt") else (("", 1),)
        for ty, size in kinds:
            own.read(text.replace("TYPE", ty).replace("SIZE", str(size)).replace("BITS", str(8 * size)), small=False)
    whole.change(library.source())
    whole.change(own)
    return whole


def definitions(text: str) -> str:
    """The definitions of all symbols in a text, transitively."""
    return library.closure(text, definition)


@cache
def definition(symbol: str) -> str | None:
    """The text that defines a symbol; None if it is no part of the library, or is given by the device."""
    if symbol in OWN:
        return OWN[symbol]
    if GIVEN.match(symbol):
        return None
    if made := shuffle(symbol):
        return made
    if name := source().symbols.get(symbol):
        return translate(source(), name)
    made = library.generated(symbol, SCALAR)
    if made and (match := elementary.SYMBOL.fullmatch(symbol)) and match[1] in VECTORS - LONG:
        return made.replace(" noinline", " inlinehint")
    return made and made.replace(' "min-legal-vector-width"="512"', "")
