"""A handler for a timer's signal, in the text of a program: it notes where the program is.

    samples: how many there were | sample 0: program counter, words of the stack | sample 1 | ...

The new ones take the places of the old ones.  Whoever reads them looks for the caller of a function of the runtime
among the words of the stack (`run/hot.py`).
"""

from __future__ import annotations

import os
import sys

HANDLER, SAMPLES = "dpl_sample", "dpl_samples"
MOST = 256  # samples that are kept; a power of two
WORDS = 48  # of the stack, in each
SIZE = 8 * (1 + WORDS)  # bytes of a sample
# where the context of a signal has the program counter, the frame pointer and the stack pointer
REGISTERS = {"x86_64": (168, 120, 160), "aarch64": (440, 416, 432)}

TEXT = """
@{samples} = global [{bytes} x i8] zeroinitializer, align 16
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @{handler}(i32 %signal, ptr %info, ptr %context) nounwind section ".text" {{
  %pc.at = getelementptr i8, ptr %context, i64 {pc}
  %pc = load i64, ptr %pc.at
  %sp.at = getelementptr i8, ptr %context, i64 {sp}
  %sp = load ptr, ptr %sp.at
  %n = atomicrmw add ptr @{samples}, i64 1 monotonic
  %row = and i64 %n, {last}
  %offset = mul i64 %row, {size}
  %first = getelementptr i8, ptr @{samples}, i64 8
  %sample = getelementptr i8, ptr %first, i64 %offset
  store i64 %pc, ptr %sample
  %words = getelementptr i8, ptr %sample, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %sp, i64 {rest}, i1 false)
  ret void
}}
"""


def is_possible() -> bool:
    """True where the handler knows the registers: on Linux, for some processors."""
    return sys.platform == "linux" and os.uname().machine in REGISTERS


def sampler(text: str) -> str:
    """What a module with this text needs to be sampled on this machine; nothing where that is not possible."""
    if not is_possible():
        return ""
    pc, _, sp = REGISTERS[os.uname().machine]
    made = TEXT.format(handler=HANDLER, samples=SAMPLES, bytes=8 + MOST * SIZE, pc=pc, sp=sp, last=MOST - 1, size=SIZE,
                       rest=8 * WORDS)  # fmt: skip
    known = "declare void @llvm.memcpy.p0.p0.i64(" in text
    return "".join(line + "\n" for line in made.split("\n") if not (known and line.startswith("declare")))
