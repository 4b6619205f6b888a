"""Rows of the operations that add up cotangents, where null stands for zero of any shape."""

from __future__ import annotations

from dpl.node import replace

from dplc.flat.ops.columns import (
    NONE,
    ZERO,
    added,
    always,
    fixed,
    free,
    if_known,
    like_first,
    linear,
    perhaps_null,
    same_type,
    signed_as,
    unknown,
    unknown_sign,
)
from dplc.flat.ops.row import (
    Attrs,
    Cost,
    Derivative,
    Dim,
    DimOf,
    Dims,
    Effect,
    Fails,
    Measure,
    Row,
    Second,
    Solid,
    Types,
)
from dplc.flat.term import BOOL, Arr, Atom, Op, Type
from dplc.flat.types import elem_of, of_rank, rank_of


def part_of_first(args: Types, at: Attrs) -> Type:
    """The type of the part of the first operand at the indices, which follow its lengths."""
    return of_rank(elem_of(args[0]), at["rank"] - (len(args) - 2 - at["rank"]))


def of_zeros(of: DimOf, op: Op, rank: int, k: int) -> Dim:
    return op.args[1 + k]


def of_indexed(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    return None if isinstance(op.args[1].ty, Arr) else op.args[2 + k]


def of_sum(m: Measure, op: Op) -> Atom | int:
    """The cost of a sum: zero if an operand is null."""
    a, b = op.args
    return m.op("min", m.elements(a), m.elements(b)) if rank_of(a.ty) else 1


def of_part(m: Measure, op: Op) -> Atom:
    """The cost of adding to a part: zero if null is added."""
    more, made = m.elements(op.args[1]), m.made(op.args[0], op.args[2 : 2 + op.attr("rank")])
    if rank_of(op.args[1].ty):
        made = m.op("mul", made, m.op("min", more, 1))
    return m.op("add", made, more)


def accumulator(
    name: str, doc: str, *, second: Second, dims: Dims, own: tuple[int, ...], solid: Solid, accumulates: bool,
    cost: Cost, derivative: Derivative,
) -> Row:  # fmt: skip
    """An operation that returns its first operand with something added, in place if that has no other owner."""
    return Row(
        name, doc, scalar=None, elementwise=False, result=like_first, second=second, dims=dims,
        own=own, fresh=True, solid=solid, changes=accumulates, accumulates=accumulates, reduces=False,
        reads=False, views=False, framed=False, spread=True, keeps="", finds="", sign=None, positive=unknown_sign,
        compares=False,
        fails=Fails.NEVER, effects=Effect.NONE, shared=False,
        cost=cost, cheap=False, quick=False, cubic=False, light=False, loops=accumulates, short=False,
        derivative=derivative,
    )  # fmt: skip


ROWS = (
    Row("is_null", "x of type Arr or Data -> bool",
        scalar=None, elementwise=False, result=fixed(BOOL), second=None, dims=unknown, own=(), fresh=False,
        solid=perhaps_null, changes=False, accumulates=False, reduces=False, reads=False, views=False,
        framed=False, spread=False, keeps="", finds="", sign=None, positive=unknown_sign, compares=False,
        fails=Fails.NEVER, effects=Effect.NONE, shared=False,
        cost=free, cheap=True, quick=False, cubic=False, light=True, loops=False, short=False, derivative=ZERO),
    replace(accumulator(
        "acc_add", "a, b floats or arrays of floats, either null -> a + b",
        second=same_type, dims=if_known(0, 1), own=(0, 1), solid=lambda op, solid: any(map(solid, op.args)),
        accumulates=False, cost=of_sum, derivative=added(0, 1)),
        positive=lambda op, positive: all(map(positive, op.args))),  # if one is null, the result is the other
    signed_as(0, accumulator(
        "acc_zeros", "a, d0 ... -> a; if it is null, zeros (0, null, tuples of them) of these dimensions",
        second=None, dims=of_zeros, own=(0,), solid=always,
        accumulates=False, cost=lambda m, op: m.made(op.args[0], op.args[1:]), derivative=linear(0))),
    accumulator("acc_extend", "a of rank 1, n -> a, and zeros after it, n elements in all",
                second=None, dims=lambda of, op, rank, k: op.args[1], own=(0,), solid=always,
                accumulates=False, cost=free, derivative=NONE),
    signed_as(0, accumulator(
        "acc_index",
        "a (null or array of floats), v (scalar or array of floats, null too), d0 ... d(k-1), i ... ->"
        " a with v added there; attr rank = k says how many d",
        second=part_of_first, dims=of_indexed, own=(0,),
        solid=lambda op, solid: not isinstance(op.args[1].ty, Arr) or solid(op.args[0]),
        accumulates=True, cost=of_part, derivative=linear(0, 1))),
    replace(accumulator(
        "acc_slice", "a (null), v (null), d0 ... d(k-1), lo; attr rank -> a with v added from row lo",
        second=None, dims=unknown, own=(0, 1), solid=perhaps_null,
        accumulates=True, cost=of_part, derivative=linear(0, 1)), spread=False),
)  # fmt: skip
