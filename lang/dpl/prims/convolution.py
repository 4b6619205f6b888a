"""The meaning of convolutions: their terms.

    y[n, i, j, o] = the sum of x[n, i * down + p * gap_down - pad_rows, ..., c] * w[p, q, c, o] over p, q, c

A term is there if its place is in the image; around it there are zeros.  With several groups, the channels of x and of
y are in as many parts, and each part of y is made from one part of x.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

Shape = tuple[int, ...]

WANTED = {"conv2d": 0, "conv2d_data": 1, "conv2d_weights": 2}
"""What an operation computes from the other two: y, x or w."""


def shapes(name: str, a: Shape, b: Shape, groups: int, rows: int, columns: int) -> tuple[Shape, Shape, Shape]:
    """The shapes of y, x and w, of which two are operands; the third one has so many rows and columns."""
    match name:
        case "conv2d":
            return (a[0], rows, columns, b[3]), a, b
        case "conv2d_data":
            return a, (a[0], rows, columns, b[2] * groups), b
        case _:
            return b, a, (rows, columns, a[3] // groups, b[3])


def terms(y: Shape, x: Shape, w: Shape, *steps: int) -> Iterator[tuple[int, int, int]]:
    """The positions in y, x and w of each product, for arrays of these shapes; those of a sum in order."""
    down, right, pad_rows, pad_columns, gap_down, gap_right, groups = steps
    outputs = y[3]
    _, height, width, channels = x
    window_rows, window_columns, inputs, _ = w
    for in_y, (n, i, j, o) in enumerate(product(*map(range, y))):
        first = o // (outputs // groups) * inputs
        for at, (p, q, c) in enumerate(product(range(window_rows), range(window_columns), range(inputs))):
            row, column = i * down + p * gap_down - pad_rows, j * right + q * gap_right - pad_columns
            if 0 <= row < height and 0 <= column < width:
                yield in_y, ((n * height + row) * width + column) * channels + first + c, at * outputs + o
