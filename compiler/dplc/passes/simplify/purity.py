"""Which right-hand sides may be dropped when they are dead, moved, and shared."""

from __future__ import annotations

from dpl.prims import TABLE

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import blocks

# They fail only on shapes, which the type checker or a `check_equal` before them has seen to.
SHAPED = frozenset({"matmul", "matmul_acc", "dot", "concat", "array"})
# They fail or give the same each time: one stands for all.
REPEATABLE = frozenset({"index", "slice", "reshape", "dot", "matmul", "str_of_codes"})
CHECKS = frozenset({"same_shape", "check_equal", "fail"})
# Not shared, as each is to be changed in place.
FRESH = frozenset(
    {
        "fill",
        "iota",
        "array",
        "acc_zeros",
        "update",
        "copy",
        "concat",
        "acc_index",
        "acc_slice",
        "acc_add",
        "matmul_acc",
    }
)


def droppable(rhs: f.Rhs) -> bool:
    match rhs:
        case f.Op():
            return pure(rhs)
        case f.TupMake() | f.TupGet() | f.ConMake() | f.Map():
            return True
        case f.Build(_, count, body):
            return natural(count) and all(droppable(bind.rhs) for bind in body.binds)
        case f.If() | f.Switch() | f.For():
            return all(droppable(bind.rhs) for block in blocks(rhs) for bind in block.binds)
        case _:
            return False


def natural(count: f.Atom) -> bool:
    return isinstance(count, f.Const) and isinstance(count.value, int) and count.value >= 0


def pure(op: f.Op) -> bool:
    """No effect, not even an error."""
    if op.op in TABLE and TABLE[op.op].elementwise:
        return TABLE[op.op].pure or f.is_float(elem_of(op.args[0].ty))
    if op.op == "fill":
        return natural(op.args[0])
    return OPS[op.op].pure or op.op in SHAPED or (bool(op.attr("unchecked")) and op.op in ("index", "slice", "update"))


def quiet(op: f.Op) -> bool:
    """No effect, except that it may fail."""
    return pure(op) or op.op in (REPEATABLE | FRESH | CHECKS) or (op.op in TABLE and TABLE[op.op].elementwise)


def shareable(op: f.Op) -> bool:
    """Whether it may be computed once for all uses (common subexpressions)."""
    if op.op in FRESH:
        return False
    return pure(op) or op.op in REPEATABLE or (op.op in TABLE and TABLE[op.op].elementwise)


def movable(rhs: f.Rhs) -> bool:
    """Whether it may be computed before a loop instead of in it, if it is invariant."""
    match rhs:
        case f.Op() as op:
            return pure(op) and op.op not in FRESH and not (op.op == "stop_grad" and rank_of(op.args[0].ty))
        case f.TupGet():
            return True
        case _:
            return False
