"""Purity: tests that tell if a right-hand side may be dropped when it is dead, moved, or shared."""

from __future__ import annotations

from collections.abc import Collection

from dplc.flat import term as f
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import blocks, mentions
from dplc.passes.simplify.row_shapes import one_shape

MADE = (f.TupMake, f.TupGet, f.ConMake, f.Map)  # what has no effects and cannot fail
HERE = "here"  # attr `unchecked` of an operation that is in bounds where it stands, since another one was checked


def changes(loop: f.While) -> bool:
    """True if the condition depends on a part of the state that a step changes, to what is not the same each time."""
    asked = set(mentions(loop.cond))
    steps = zip(loop.state, loop.body.results, strict=False)
    return any(var.name in asked and not isinstance(after, f.Const) and after != var for var, after in steps)


def droppable(rhs: f.Rhs, total: Collection[str] = ()) -> bool:
    """True for code without effects that ends and cannot fail.  `total` are functions of which that is known.  A loop
    is taken to end if its condition depends on a part of the state that its steps change."""
    if isinstance(rhs, f.Op):
        return pure(rhs)
    if isinstance(rhs, MADE):
        return True
    match rhs:
        case f.Call(fn):
            return fn in total
        case f.Build(_, count) if not (natural(count) and one_shape(rhs)):
            return False
        case f.Par(space) if not (all(natural(count) for _, count in space) and one_shape(rhs)):
            return False
        case f.While() if not changes(rhs):
            return False
        case f.If() | f.Switch() | f.For() | f.While() | f.Build() | f.Par():
            return all(droppable(bind.rhs, total) for block in blocks(rhs) for bind in block.binds)
        case _:
            return False


def natural(count: f.Atom) -> bool:
    """True for a constant that is at least 0."""
    return isinstance(count, f.Const) and isinstance(count.value, int) and count.value >= 0


def natural_divisor(x: f.Atom) -> bool:
    return natural(x) and x != f.Const(0, x.ty)


def pure(op: f.Op) -> bool:
    """True for an operation that has no effects and cannot fail."""
    row = OPS[op.op]
    if row.fails is Fails.NEVER or row.fails is Fails.SHAPES:
        return row.quiet
    match row.fails:
        case Fails.ZERO:
            return f.is_float(elem_of(op.args[0].ty)) or bool(op.attr("ring")) or natural_divisor(op.args[-1])
        case Fails.COUNT:
            return natural(op.args[0]) or bool(op.attr("unchecked"))
        case Fails.BOUNDS | Fails.VALUES:
            return bool(op.attr("unchecked"))
        case _:
            return False


def quiet(op: f.Op) -> bool:
    """True for an operation that has no effects; it may fail."""
    return OPS[op.op].quiet


def shareable(op: f.Op) -> bool:
    """True if one result may serve all uses (common subexpressions)."""
    return OPS[op.op].repeatable


def movable(rhs: f.Rhs) -> bool:
    """True if it may move before a loop, when it is invariant."""
    if isinstance(rhs, f.Op):
        return pure(rhs) and OPS[rhs.op].repeatable and not takes_over(rhs) and rhs.attr("unchecked") != HERE
    return isinstance(rhs, f.TupGet)


def takes_over(op: f.Op) -> bool:
    """True if the memory of an operand may be reused for the result, which is not a part of it."""
    row = OPS[op.op]
    return not (row.elementwise or row.views) and any(rank_of(op.args[i].ty) for i in row.own)
