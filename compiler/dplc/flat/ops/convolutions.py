"""Rows of convolutions of images.  Each of these arrays of rank 4 is computed from the other two:

    x    image, row, column, channel
    w    row and column of the window, channel of x in its group, channel of y
    y    image, row, column, channel

The operands after these two: two steps (down and right), two paddings, two gaps (between the terms of a window), the
number of groups, rows and columns of the result.  That the sizes agree has been checked before.  The terms of the sums
are in `dpl/prims/convolution.py`.
"""

from __future__ import annotations

from dplc.flat.ops.arrays import array
from dplc.flat.ops.columns import like_first, product, same_type
from dplc.flat.ops.row import Cost, Dim, DimOf, Fails, Measure, Row
from dplc.flat.term import Atom, Op

LENGTHS = {
    "conv2d": ((0, 0), -2, -1, (1, 3)), "conv2d_data": ((0, 0), -2, -1, None), "conv2d_weights": (-2, -1, None, (1, 3)),
}  # fmt: skip
"""The dimensions of the result: an operand, or that dimension of an operand; None: another number."""


TRANSPOSED = {
    ("conv2d", 0): ("conv2d_data", 0), ("conv2d", 1): ("conv2d_weights", 1), ("conv2d_data", 0): ("conv2d", 0),
    ("conv2d_data", 1): ("conv2d_weights", 0), ("conv2d_weights", 0): ("conv2d_data", 1),
    ("conv2d_weights", 1): ("conv2d", 1),
}  # fmt: skip
"""(A convolution, a factor of it) -> the convolution that gives its cotangent, and which factor the other one is."""


def of_result(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    match LENGTHS[op.op][k]:
        case (operand, j):
            return of(op.args[operand], j)
        case int(operand):
            return op.args[operand]
        case _:
            return None


def of_images(m: Measure, op: Op) -> Atom:
    """Two for each pair of factors: each weight, at each place of y."""
    places = op.args[-2:] if op.op == "conv2d" else [m.dim(op.args[0], k) for k in (1, 2)]
    return m.product(2, m.elements(op.args[1]), m.dim(op.args[0], 0), *places)


def of_weights(m: Measure, op: Op) -> Atom:
    inputs = m.op("div", m.dim(op.args[0], 3), op.args[-3])
    return m.product(2, m.elements(op.args[1]), inputs, *op.args[-2:])


def convolution(name: str, doc: str, cost: Cost) -> Row:
    return array(
        name, doc, result=like_first, second=same_type, dims=of_result, own=(), fresh=False, fails=Fails.SHAPES,
        cost=cost, light=False, loops=False, derivative=product(0, 1),
    )  # fmt: skip


ROWS = (
    convolution("conv2d", "x, w, ..., attr masked -> y: a convolution", of_images),
    convolution("conv2d_data", "y, w, ..., attr masked -> x: its transpose in x", of_images),
    convolution("conv2d_weights", "x, y, ..., attr masked -> w: its transpose in w", of_weights),
)
