"""Operations and their derivatives.

Scalar rows take theirs from the table; this file has the bulk operations.  A bulk operation is linear in some of its
operands (or bilinear), and its rule says what becomes of a tangent of each of them:

    forward  y = index a i        dy = index da i
    reverse                       ca = acc_index ca cy (dims of a) i          O(1), as ca is updated in place
    forward  y = sum a            dy = sum da
    reverse                       ca = ca + fill n cy

The accumulating operations of `flat/ops/table.py` are linear too and have rules like the rest, so that derivatives can
be differentiated again.
"""

from __future__ import annotations

from dpl.diagnostics import DplError
from dpl.prims import TABLE, contribution
from dpl.source import NOWHERE

from dplc.ad.builder import Builder, World
from dplc.flat import term as f
from dplc.flat.types import rank_of

# Operands of which an operation is a linear function, the others being fixed.
LINEAR: dict[str, tuple[int, ...]] = {
    "cast": (0,), "index": (0,), "update": (0, 1), "slice": (0,), "concat": (0, 1), "reshape": (0,), "copy": (0,),
    "transpose": (0,), "fill": (1,), "sum": (0,), "sum_to": (0,), "dot": (0, 1), "matmul": (0, 1),
    "matmul_acc": (0, 1, 2), "acc_add": (0, 1), "acc_zeros": (0,), "acc_index": (0, 1), "acc_slice": (0, 1),
}  # fmt: skip
# Operations with floats in and floats out, or references to them, whose derivative is zero or handled elsewhere.
CONSTANT = frozenset({"stop_grad", "ref_new", "ref_get", "ref_set", "fail", "exit", "dim", "is_null"})
# Rows whose derivative never multiplies: zero stays zero there, whatever the operands.
MASKS = frozenset({"max", "min", "clip", "select", "relu"})  # they choose: what is not chosen gets nothing
SAFE = MASKS | {"add", "sub", "neg"}
# Rows that are not linear in what they are differentiated by.
CURVED = frozenset(
    row.name
    for row in TABLE.values()
    if row.linear and any(row.linear) and row.name not in ("add", "sub", "neg", "mul", "div", "select", "to_like")
)


def scalar_row(op: str) -> bool:
    return op in TABLE and TABLE[op].elementwise


def flows(op: f.Op) -> tuple[int, ...]:
    """The operands whose tangents matter to the results'."""
    if op.op == "array" or not known(op):
        return tuple(range(len(op.args)))
    if scalar_row(op.op):
        return tuple(i for i, rule in enumerate(TABLE[op.op].linear or ()) if rule is not None)
    return LINEAR.get(op.op, ())


def known(op: f.Op) -> bool:
    return op.op == "array" or op.op in LINEAR or op.op in CONSTANT or scalar_row(op.op)


def refuse(op: f.Op) -> DplError:
    """An operation in the way of a derivative that has none."""
    if op.op == "extern":
        symbol = op.attr("symbol")
        return DplError.at(
            "E0404", f"the external function `{symbol}` has no derivative", op.span,
            helps=("give it one: with_jvp f (fun x dx -> (f x, ...))",),
        )  # fmt: skip
    return DplError.at("E0406", f"`{op.op}` has no derivative", op.span)


def scalar_part(b: Builder, op: f.Op, i: int, t: f.Atom, y: f.Var, has_zeros: bool) -> f.Atom:
    """What the tangent `t` of operand `i` of a scalar row contributes to the result's, or the cotangent `t` of the
    result to the operand's: the same expression.  Where `t` `has_zeros`, a zero may be symbolic, and stays zero."""
    row = TABLE[op.op]
    assert row.linear is not None
    rule = row.linear[i]
    assert rule is not None
    part = contribution(World(b, op.span), rule, t, op.args, y)
    return masked(b, t, part) if has_zeros and op.op not in SAFE else part


def masked(b: Builder, t: f.Atom, part: f.Atom) -> f.Atom:
    """`part`, linear in `t`, but nothing where `t` is nothing: 0.0 * inf is NaN.  (Where `part` is no NaN it stays,
    zero or not, so that its own derivative is right also at t = 0.)"""
    world = World(b, NOWHERE)
    nothing = world.literal(0.0, t)
    absent = b.op("and", b.op("eq", t, nothing), b.op("ne", part, part))
    return b.op("select", absent, nothing, part)


def lift(b: Builder, t: f.Atom, y: f.Atom) -> f.Atom:
    """`t` as an array of the shape of `y`, over whose leading dimensions it is constant."""
    for k in reversed(range(rank_of(y.ty) - rank_of(t.ty))):
        t = b.op("fill", b.op("dim", y, k=k), t)
    return t


def matmul_parts(op: f.Op, t: f.Atom, i: int) -> tuple[f.Atom, f.Atom, bool, bool]:
    """The cotangent of operand `i` of a matrix product with result cotangent `t`, as a product itself: left, right and
    whether they are to be transposed.

        y = A B    cA = c B'   cB = A' c        y = A' B   cA = B c'   cB = A c
        y = A B'   cA = c B    cB = c' A        y = A' B'  cA = B' c'  cB = c' A'
    """
    a, b = op.args[-2:]
    ta, tb = bool(op.attr("ta")), bool(op.attr("tb"))
    if i == 0:
        return (b, t, tb, True) if ta else (t, b, False, not tb)
    return (t, a, True, ta) if tb else (a, t, not ta, False)
