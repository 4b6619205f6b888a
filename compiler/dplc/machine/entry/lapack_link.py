"""LAPACK link: the routines that an executable or library is linked with, if any (`dpl build -l openblas`).

    start         the first instruction of a program: tells `rt/lapack.rt` how to find the routines
    definitions   the function that finds them: fills in the table if all routines are there

The routines are weak symbols: one that is not linked is null.  On systems without weak symbols the table stays empty.
"""

from __future__ import annotations

from dpl.system.lapack import ROUTINES

from dplc.flat import term as f
from dplc.flat.walk import every
from dplc.machine.llvm.target import Target

START = '  store ptr @"dpl find lapack", ptr @rt.lapack\n'
BYTES_OF_AN_INTEGER = 4  # in LAPACK libraries whose symbols look like `dgetrf_`
SYSTEMS = ("linux", "musl")


def is_wanted(program: f.Program, target: Target) -> bool:
    ops = (bind.rhs.op for fn in program.fns.values() for bind in every(fn.body) if isinstance(bind.rhs, f.Op))
    return target.system in SYSTEMS and not target.jit and "has_lapack" in ops


def start(program: f.Program, target: Target) -> str:
    """The call at a program's start that finds the routines; empty if the program has none to find."""
    return START if is_wanted(program, target) else ""


def definitions(program: f.Program, target: Target) -> str:
    """The function that `start` calls: it fills the table of routines if all of them are linked (weak symbols)."""
    if not is_wanted(program, target):
        return ""
    lines = [f"declare extern_weak void @{name}_()" for name in ROUTINES]
    lines += ['define internal void @"dpl find lapack"(ptr %table) {', "entry:"]
    lines += [f"  %is.{name} = icmp ne ptr @{name}_, null" for name in ROUTINES]
    known = f"%is.{ROUTINES[0]}"
    for name in ROUTINES[1:]:
        lines.append(f"  %all.{name} = and i1 {known}, %is.{name}")
        known = f"%all.{name}"
    lines += [f"  br i1 {known}, label %found, label %done", "found:"]
    lines += ["  %width = getelementptr i8, ptr %table, i64 8", f"  store i64 {BYTES_OF_AN_INTEGER}, ptr %width"]
    for i, name in enumerate(ROUTINES):
        lines.append(f"  %at.{name} = getelementptr i8, ptr %table, i64 {16 + 8 * i}")
        lines.append(f"  store ptr @{name}_, ptr %at.{name}")
    return "\n".join([*lines, "  br label %done", "done:", "  ret void", "}\n"])
