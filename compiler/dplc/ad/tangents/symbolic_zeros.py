"""Symbolic zeros: where a tangent may be the zero of what does not depend on anything.

Zero comes in two kinds.  A number that happens to be 0.0 follows IEEE: 0.0 * inf is NaN.  A *symbolic zero* is the
derivative of what does not depend on anything: it contributes exactly nothing, even through an infinite derivative.

A symbolic zero that is known when compiling has no variable at all: `None` stands in place of its `Part`.  One that is
known only when running, as after a branch that did not touch a variable, is 0.0 in a float and null in an array or
data.  So code that meets a tangent that may be a symbolic zero takes every zero for a symbolic one.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from dpl.node import node

from dplc.ad.tangents.types import zero
from dplc.flat import term as f


class Zeros(IntEnum):
    """Where a tangent may be a symbolic zero; the larger, the less is known."""

    NONE = 0  # nowhere
    ELEMENTS = 1  # some elements of an array that is not null itself
    WHOLE = 2  # all of it: it may be null, or 0.0


NO_ZEROS, ZERO_ELEMENTS, MAYBE_ZERO = Zeros.NONE, Zeros.ELEMENTS, Zeros.WHOLE


@node
class Part:
    """A leaf of a tangent or cotangent."""

    atom: f.Atom
    zeros: Zeros = NO_ZEROS

    @property
    def nullable(self) -> bool:
        return self.zeros is MAYBE_ZERO and not f.is_float(self.atom.ty)

    def part(self, ty: f.Type) -> Zeros:
        """What is known of a piece, of leaf type `ty`, read from this array or data."""
        if isinstance(self.atom.ty, f.Arr) and f.is_float(self.atom.ty.elem) and self.zeros is not MAYBE_ZERO:
            return self.zeros if isinstance(ty, f.Arr) else NO_ZEROS if self.zeros is NO_ZEROS else MAYBE_ZERO
        return MAYBE_ZERO

    def part_of_sum(self, ty: f.Type) -> Zeros:
        """Of a contribution of leaf type `ty` made from this one.  (A float is a sum, symbolic zeros included.)"""
        return NO_ZEROS if self.zeros is NO_ZEROS else ZERO_ELEMENTS if isinstance(ty, f.Arr) else MAYBE_ZERO

    @property
    def has_zeros(self) -> bool:
        """Whether it may have symbolic zeros."""
        return self.zeros is not NO_ZEROS


def whole(parts: Iterable[Part]) -> Zeros:
    """Of an array made of parts of which none is null."""
    return NO_ZEROS if all(p.zeros is NO_ZEROS for p in parts) else ZERO_ELEMENTS


def together(a: Zeros, b: Zeros) -> Zeros:
    """Of a sum."""
    return min(a, b)


def either(parts: Iterable[Part | None]) -> Zeros:
    """Of a part that is one of several; None is a symbolic zero."""
    return max((MAYBE_ZERO if p is None else p.zeros for p in parts), default=MAYBE_ZERO)


def atom_of(part: Part | None, leaf: f.Type) -> f.Atom:
    return zero(leaf) if part is None else part.atom
