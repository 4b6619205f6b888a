"""A scalar operation of flat -> LLVM text, in a function's body."""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.types import elem_of
from dplc.machine.emit import maths
from dplc.machine.emit.emitter import Emitter
from dplc.machine.llvm.types import SCALARS
from dplc.narrow import expect_type


def scalar_type(ty: f.Type) -> str:
    return expect_type(f.Num, elem_of(ty)).name


def scalar(e: Emitter, op: f.Op, operands: Sequence[str]) -> str:
    """The result of an operation on these operands (for arrays, on elements of them)."""
    types = [scalar_type(atom.ty) for atom in op.args]
    match op.op:
        case "cast":
            lines, result = maths.cast(types[0], op.attr("to"), operands[0], e.w.fresh)
        case "bitcast":
            source, target = SCALARS[types[0]], SCALARS[op.attr("to")]
            if source == target:
                return operands[0]
            return e.w.let(f"bitcast {source} {operands[0]} to {target}")
        case row:
            of = types[1] if row in ("select", "polygamma") else types[0]
            lines, result = maths.scalar(row, of, list(operands), e.w.fresh, e.site(op.span))
    e.w.extend(lines)
    return result
