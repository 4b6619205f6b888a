"""Polling for an interrupt, in programs whose caller may cancel them (`Unit.interruptible`).

The host requests an interrupt by setting the stack limit to -1.  Recursive functions check the stack limit anyway;
loops poll it.

    for i < n { long step }     ==>     for i < n { poll; long step }
    for i < n { short step }    ==>     for strips of STRIP steps { poll; for i in strip { short step } }

LLVM vectorises the loop of a strip as it would without polling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.llvm.writer import Mark, Values
from dplc.machine.runtime.failure_codes import Failure

STRIP = 4096


def poll(e: BodyEmitter) -> None:
    """Polls for an interrupt: the host sets the stack limit to -1."""
    if e.unit.interruptible:
        limit = e.w.let("load volatile i64, ptr @rt.stack_limit")
        e.require(e.w.let(f"icmp ne i64 {limit}, -1"), Failure.DEPTH, e.site(e.fn.span))


def count_to(
    e: BodyEmitter,
    count: str,
    step: Callable[[str, Values], Values],
    types: Sequence[str] = (),
    inits: Sequence[str] = (),
    mark: Mark = "",
    short: bool = True,
    first: str = "0",
) -> Values:
    """for first <= i < count, with a state, and polling; `mark` is loop metadata."""
    w = e.w

    def polling(i: str, state: Values) -> Values:
        poll(e)
        return step(i, state)

    def strip(state: Values) -> Values:
        poll(e)
        stop = w.let(f"call i64 @llvm.smin.i64(i64 {count}, i64 {w.let(f'add nuw i64 {state[0]}, {STRIP}')})")
        return [stop, *w.count_to(stop, step, types, state[1:], mark, state[0])]

    def unfinished(state: Values) -> str:
        return w.let(f"icmp slt i64 {state[0]}, {count}")

    if not e.unit.interruptible or not short:
        return w.count_to(count, polling, types, inits, mark, first, e.loop)
    return e.loop(("i64", *types), [first, *inits], unfinished, strip)[1:]


def is_short(block: f.Block) -> bool:
    """True if a block does only a few operations on numbers and elements of arrays."""
    return all(_is_short(bind.rhs) for bind in block.binds)


def _is_short(rhs: f.Rhs) -> bool:
    match rhs:
        case f.Op("acc_add", (a, _)):
            return isinstance(a.ty, f.Num)
        case f.Op(op, args):
            row = OPS[op]
            others = args[1:] if row.short else args
            return (row.short or row.elementwise) and not any(isinstance(atom.ty, f.Arr) for atom in others)
        case f.If(_, then, else_):
            return is_short(then) and is_short(else_)
        case _:
            return isinstance(rhs, f.TupMake | f.TupGet)
