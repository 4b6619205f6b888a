"""When loops poll for an interrupt: where a caller may cancel the call (`Unit.patient`).

What stops them is a limit of the stack that leaves no room at all; functions that call themselves ask for room anyway.

    for i < n { long step }     ==>     for i < n { ask; long step }
    for i < n { short step }    ==>     for strips of STRIP steps { ask; for i in strip { short step } }

A loop within a strip is as it would be without: LLVM makes vectors of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.machine.failure.failures import Failure
from dplc.machine.llvm.writer import Values

if TYPE_CHECKING:
    from dplc.machine.emit.function import FunctionEmitter

STRIP = 4096


def ask(e: FunctionEmitter) -> None:
    """The program ends here if there is no stack left at all: somebody wants it to."""
    if not e.unit.patient:
        limit = e.w.let("load volatile i64, ptr @rt.stack_limit")
        e.require(e.w.let(f"icmp ne i64 {limit}, -1"), Failure.DEPTH, e.site(e.fn.span))


def steps(
    e: FunctionEmitter,
    count: str,
    step: Callable[[str, Values], Values],
    types: Sequence[str] = (),
    inits: Sequence[str] = (),
    mark: str = "",
    short: bool = True,
) -> Values:
    """for i < count, with a state; `mark` is loop metadata."""
    w = e.w

    def asking(i: str, state: Values) -> Values:
        ask(e)
        return step(i, state)

    def strip(state: Values) -> Values:
        ask(e)
        stop = w.let(f"call i64 @llvm.smin.i64(i64 {count}, i64 {w.let(f'add nuw i64 {state[0]}, {STRIP}')})")
        return [stop, *w.count_to(stop, step, types, state[1:], mark, state[0])]

    def unfinished(state: Values) -> str:
        return w.let(f"icmp slt i64 {state[0]}, {count}")

    if e.unit.patient or not short:
        return w.count_to(count, asking, types, inits, mark)
    return w.loop(("i64", *types), ["0", *inits], unfinished, strip)[1:]


def is_short(block: f.Block) -> bool:
    """Whether a block only does a few things with numbers and with elements of arrays."""
    return all(_is_short(bind.rhs) for bind in block.binds)


def _is_short(rhs: f.Rhs) -> bool:
    match rhs:
        case f.Op(op, args):
            row = OPS[op]
            others = args[1:] if row.short else args
            return (row.short or row.elementwise) and not any(isinstance(atom.ty, f.Arr) for atom in others)
        case f.If(_, then, else_):
            return is_short(then) and is_short(else_)
        case _:
            return isinstance(rhs, f.TupMake | f.TupGet)
