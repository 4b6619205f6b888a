"""Symbolic zeros: zero tangents of values that do not depend on the input.

Zero comes in two kinds.  A number that happens to be 0.0 follows IEEE: 0.0 * inf is NaN.  A *symbolic zero* is the
derivative of a value that does not depend on the input: it contributes exactly nothing, even through an infinite
derivative.

A symbolic zero that is known at compile time has no variable: its `Part` is `None`.  One that is known only at run
time, as after a branch that did not touch a variable, is 0.0 for a float and null for an array or data.  A condition
tells them apart where a float comes from one branch of an `if`, a loop, or `max` and the like (`Part.absent`).
Elsewhere, if a tangent may be a symbolic zero, every zero in it is taken for a symbolic one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import reduce

from dpl.node import node

from dplc.ad.builder import Builder
from dplc.ad.tangents.types import zero
from dplc.flat import term as f


class Zeros(IntEnum):
    """The places where a tangent may be a symbolic zero.  A greater value means less is known."""

    NONE = 0  # nowhere
    ELEMENTS = 1  # some elements of an array that is not null itself
    WHOLE = 2  # all of it: it may be null, or 0.0


NO_ZEROS, ZERO_ELEMENTS, MAYBE_ZERO = Zeros.NONE, Zeros.ELEMENTS, Zeros.WHOLE


@node
class Part:
    """A leaf of a tangent or cotangent.  Where `absent` is given, a float is a symbolic zero if this condition is true,
    and a number otherwise."""

    atom: f.Atom
    zeros: Zeros = NO_ZEROS
    absent: f.Atom | None = None

    @property
    def nullable(self) -> bool:
        return self.zeros is MAYBE_ZERO and not f.is_float(self.atom.ty)

    def part(self, ty: f.Type) -> Zeros:
        """The zeros of a piece of leaf type `ty`, read from this array or data."""
        if isinstance(self.atom.ty, f.Arr) and f.is_float(self.atom.ty.elem) and self.zeros is not MAYBE_ZERO:
            return self.zeros if isinstance(ty, f.Arr) else NO_ZEROS if self.zeros is NO_ZEROS else MAYBE_ZERO
        return MAYBE_ZERO

    def part_of_sum(self, ty: f.Type) -> Zeros:
        """The zeros of a contribution of leaf type `ty` computed from this part.  A float may be a sum over symbolic
        zeros."""
        return NO_ZEROS if self.zeros is NO_ZEROS else ZERO_ELEMENTS if isinstance(ty, f.Arr) else MAYBE_ZERO

    @property
    def has_zeros(self) -> bool:
        """True if it may have symbolic zeros."""
        return self.zeros is not NO_ZEROS


def whole(parts: Iterable[Part]) -> Zeros:
    """The zeros of an array made of parts, none of which is null."""
    return NO_ZEROS if all(p.zeros is NO_ZEROS for p in parts) else ZERO_ELEMENTS


def together(a: Zeros, b: Zeros) -> Zeros:
    """The zeros of a sum."""
    return min(a, b)


def either(parts: Iterable[Part | None]) -> Zeros:
    """The zeros of a value that is one of several parts.  None is a symbolic zero."""
    return max((MAYBE_ZERO if p is None else p.zeros for p in parts), default=MAYBE_ZERO)


def absent_if(b: Builder, cond: f.Atom | None, ends: Sequence[Part | None]) -> f.Atom | None:
    """The condition under which a result of an `if` is a symbolic zero, if it is a float that one branch gives."""
    given = [end for end in ends if end is not None]
    if cond is None or len(given) != 1 or given[0].has_zeros or not f.is_float(given[0].atom.ty):
        return None
    return cond if ends[0] is None else b.op("not", cond)


def absent_both(b: Builder, parts: Sequence[Part]) -> f.Atom | None:
    """The condition under which a sum is a symbolic zero: that all its parts are; None if it is not known."""
    conds = list(dict.fromkeys(part.absent for part in parts))
    return None if None in conds else reduce(lambda x, y: b.op("and", x, y), filter(None, conds))


def after_loop(b: Builder, out: f.Atom, zeros: Zeros, count: f.Atom | None, ends: Sequence[Part | None]) -> Part:
    """A result of a loop, with its zeros.  `ends` are what it is after no step and after one or more of `count`."""
    if count is None or ends[0] is not None or ends[1] is None:
        return Part(out, zeros)
    mixed = ends[1].zeros is NO_ZEROS and f.is_float(out.ty)
    return Part(out, zeros, b.op("le", count, f.Const(0, f.I64)) if mixed else None)


def atom_of(part: Part | None, leaf: f.Type) -> f.Atom:
    return zero(leaf) if part is None else part.atom
