"""Masked products: those in which the zeros of a factor contribute nothing, even if the other factor is infinite or NaN
there (0.0 * inf is NaN).

    matmul masked=left c w              the zeros of `c` win; c is a tangent with symbolic zeros
    dot masked=both c dw                those of both factors

Which factors these are is kept as bits: bit 0 for the left one, bit 1 for the right one.
"""

from __future__ import annotations

from dplc.flat.term import Op

NAMES = ("", "left", "right", "both")


def masked(op: Op) -> int:
    """The factors of a product whose zeros win."""
    return NAMES.index(op.attr("masked", ""))


def attribute(bits: int) -> dict[str, object]:
    """The attribute that says so; none for plain products."""
    return {"masked": NAMES[bits]} if bits else {}


def exchanged(bits: int) -> int:
    """The same when the factors change places."""
    return bits >> 1 | (bits & 1) << 1
