"""The derivatives of operations.

Scalar rows take theirs from the table; this file has the bulk operations.  A bulk operation is linear in some of its
operands (or bilinear), and its rule maps the tangent of each of them:

    forward  y = index a i        dy = index da i
    reverse                       ca = acc_index ca cy (dims of a) i          O(1), as ca is updated in place
    forward  y = sum a            dy = sum da
    reverse                       ca = ca + fill n cy

The accumulating operations (`flat/ops/accumulators.py`) are linear too and have rules like the rest, so that
derivatives can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from dpl.diagnostics import DplError, foreign
from dpl.prims import contribution
from dpl.source import NOWHERE

from dplc.ad.rules.world import World
from dplc.ad.tangents.symbolic_zeros import Part, absence
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.ops.row import Rule
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of


def flows(op: f.Op) -> tuple[int, ...]:
    """The operands whose tangents affect those of the results."""
    found = OPS[op.op].derivative.flows
    return tuple(range(len(op.args))) if found is None else found


def known(op: f.Op) -> bool:
    """True if an operation has a derivative, even if that is zero."""
    return OPS[op.op].derivative.rule is not Rule.NONE


def refuse(op: f.Op) -> DplError:
    """The error for an operation that has no derivative."""
    if op.op == "extern":
        return foreign(op.attr("symbol"), op.span)
    return DplError.at("E0406", f"`{op.op}` has no derivative", op.span)


def scalar_part(b: Builder, op: f.Op, i: int, t: Part, y: f.Var, all_flow: bool) -> f.Atom:
    """The contribution of operand `i` of a scalar row: from its tangent `t` to the result's, or from the result's
    cotangent `t` to the operand's.  Both are the same expression.  A symbolic zero stays zero.  `all_flow` says that
    all operands have contributions."""
    row = OPS[op.op]
    if op.attr("absent"):
        return t.atom
    assert row.scalar is not None
    rules = row.scalar.rules(all_flow)
    rule = rules[i] if rules is not None else None
    assert rule is not None
    part = contribution(World(b, op.span), rule, t.atom, op.args, y)
    doubtful = t.has_zeros and row.derivative.multiplies and not stays_zero(rule, op.args)
    return masked(b, t, part) if doubtful else part


def chooses(op: f.Op) -> bool:
    """True for a row that chooses one of its operands.  A choice that only marks a symbolic zero (`signed`) is the
    number beside the mark: this may be 0.0, which was taken for a symbolic zero, and have a derivative."""
    return OPS[op.op].derivative.chooses and not op.attr("absent")


def not_chosen(b: Builder, other: f.Atom | None, t: Part) -> f.Atom | None:
    """The condition under which nothing of `t` is in a contribution, if a row chooses another operand under the
    condition `other`; None if that is not known."""
    return b.op("or", (other, absence(b, t))) if other is not None and t.has_zeros else other


def other_chosen(b: Builder, op: f.Op, i: int, t: Part, y: f.Var) -> f.Atom | None:
    """The condition under which a row does not choose operand `i`; None if it is not known."""
    row = OPS[op.op].scalar
    if not f.is_float(y.ty):
        return None
    assert row is not None and row.linear is not None
    rule, world = row.linear[i], World(b, op.span)
    assert rule is not None
    one, zero = world.literal(1.0, t.atom), world.literal(0.0, t.atom)
    before = len(b.binds)
    share = contribution(world, rule, one, op.args, y)
    choices: dict[f.Atom, f.Bind] = {bind.vars[0]: bind for bind in b.binds[before:]}
    others: list[f.Atom] = []
    while share != one:
        match choices.get(share):
            case f.Bind(_, f.Op("select", (cond, first, second))) as bind:
                b.binds.remove(bind)  # its condition is what is asked for
                share, other = (second, cond) if first == zero else (first, b.op("not", (cond,)))
                others.append(other)
            case _:
                return None
    return reduce(lambda x, y: b.op("or", (x, y)), others) if others else f.Const(False, f.BOOL)


def stays_zero(rule: Callable, args: Sequence[f.Atom]) -> bool:
    """True if a derivative rule gives zero for a tangent of zero, as a product with 0.1 does: it reads no operand but
    constants, and these are finite."""
    known = [a.value if isinstance(a, f.Const) and f.is_float(a.ty) else None for a in args]
    try:
        return rule(0.0, known, None) == 0.0
    except (AttributeError, TypeError, ZeroDivisionError):  # a variable is read; a division by zero
        return False


def masked(b: Builder, t: Part, part: f.Atom) -> f.Atom:
    """`part`, which is linear in `t`, but zero where `t` is a symbolic zero and `part` is NaN, as in 0.0 * inf.  Where
    `part` is not NaN it stays, zero or not, so that its own derivative is also correct at t = 0; unless it is certain
    that nothing is there, as after `max`: then there is no derivative, either (`ad/expand.py`)."""
    return guarded(b, absence(b, t), part, t.certain and t.absent is not None)


def guarded(b: Builder, absent: f.Atom, part: f.Atom, certain: bool = False) -> f.Var:
    """`part`, but zero where it is NaN and `absent` is true (`flat/nans.py`)."""
    nothing, mask = World(b, NOWHERE).literal(0.0, part), b.op("and", (absent, b.op("ne", (part, part))))
    return b.op("select", (mask, nothing, part), certain=True) if certain else b.op("select", (mask, nothing, part))


def lift(b: Builder, t: f.Atom, y: f.Atom) -> f.Atom:
    """`t` as an array of the shape of `y`, constant over the leading dimensions."""
    for k in reversed(range(rank_of(y.ty) - rank_of(t.ty))):
        t = b.op("fill", (b.op("dim", (y,), k=k), t))
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
