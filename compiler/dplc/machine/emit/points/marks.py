"""The metadata of innermost loops whose points are independent: what LLVM is told, so that it makes vectors of them."""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.points.lane_operations import has_functions
from dplc.machine.emit.points.masks import has_masks
from dplc.machine.llvm.target import MASKED
from dplc.machine.llvm.types import SIZES
from dplc.machine.llvm.writer import Halves

UNDER_WAY = 4  # vectors of a function's results that are computed at a time: each one waits long for its operands
VECTOR = 64  # bytes, at most
TWICE = 16  # operations, at most, of a loop that is written twice


def marked(e: BodyEmitter, loop: tuple[f.Var, f.Atom], binds: Sequence[f.Bind], wide: bool) -> str | Halves:
    """The metadata of a loop, an index and its count: accesses of the present group in different steps do not overlap.
    Where vectors of functions are computed, several are under way at a time, and the last ones are masked."""
    accesses = e.unit.metadata(f'!{{!"llvm.loop.parallel_accesses", {e.groups[-1]}}}')
    if e.is_cold or not (wide and has_functions(binds)):
        return e.unit.loop_mark(accesses, *(masks(e, loop, binds) if wide and not e.is_cold else ()))
    steps = UNDER_WAY * VECTOR // size_of(binds)
    several = e.unit.metadata(f'!{{!"llvm.loop.interleave.count", i32 {UNDER_WAY}}}')
    whole = e.unit.loop_mark(accesses, several)
    if len(binds) > TWICE:
        return whole
    return Halves(whole, e.unit.loop_mark(accesses, MASKED), steps)


def masks(e: BodyEmitter, loop: tuple[f.Var, f.Atom], binds: Sequence[f.Bind]) -> list[str]:
    """The metadata of a loop whose branches become masks, where the machine has them."""
    if not e.unit.has_masks or not has_masks(*loop, binds, e.fn.body):
        return []
    return [e.unit.metadata(f'!{{!"llvm.loop.vectorize.width", i32 {e.unit.vector_bytes // size_of(binds)}}}')]


def size_of(binds: Sequence[f.Bind]) -> int:
    """The bytes of the smallest floats that a loop computes."""
    return SIZES["float" if any(var.ty == f.F32 for bind in binds for var in bind.vars) else "double"]
