"""A scalar operation of flat -> LLVM text, in a function's body."""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.types import elem_of
from dplc.machine.emit.module.emitter import Emitter
from dplc.machine.emit.scalars import maths
from dplc.machine.llvm.types import SCALARS
from dplc.narrow import expect_type


def scalar_type(ty: f.Type) -> str:
    """The name of the type of a number, or of an array's elements."""
    return expect_type(f.Num, elem_of(ty)).name


def scalar(e: Emitter, op: f.Op, operands: Sequence[str]) -> str:
    """The result of an operation on these operands (for arrays, on elements of them)."""
    types = [scalar_type(atom.ty) for atom in op.args]
    match op.op:
        case "cast":
            lines, result = maths.cast(types[0], op.attr("to"), operands[0], e.w.fresh, e.unit.vector_bytes >= 64)
        case "bitcast":
            source, target = SCALARS[types[0]], SCALARS[op.attr("to")]
            if source == target:
                return operands[0]
            return e.w.let(f"bitcast {source} {operands[0]} to {target}")
        case "mod" if op.attr("ring"):  # a division by hand, for -n <= a < 2 n
            a, n = operands
            low = e.w.let(f"icmp slt i64 {a}, 0")
            a = e.w.let(f"select i1 {low}, i64 {e.w.let(f'add i64 {a}, {n}')}, i64 {a}")
            high = e.w.let(f"icmp sge i64 {a}, {n}")
            return e.w.let(f"select i1 {high}, i64 {e.w.let(f'sub i64 {a}, {n}')}, i64 {a}")
        case row:
            of = types[1] if row in ("select", "polygamma") else types[0]
            lines, result = maths.scalar(row, of, list(operands), e.w.fresh, e.site(op.span))
    e.w.extend(lines)
    return result
