"""How much of a tangent is there: what code knows of it while it is written.

Zero comes in two kinds.  A number that happens to be 0.0 follows IEEE (0.0 * inf is NaN); the derivative of what does
not depend on anything is *absent*, and contributes exactly nothing, even through an infinite derivative.  Absence known
when compiling is no variable at all.  Absence known only when running (a branch that did not touch a variable) is 0.0
in a float, null in an array or data, and code that meets a tangent that is `MAYBE` there, or an array with holes, takes
zero for absent.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from dpl.node import node

from dplc.ad.tangents.types import zero
from dplc.flat import term as f


class Presence(IntEnum):
    FULL = 0  # there
    HOLEY = 1  # an array that is not null, with zeros where nothing is there
    MAYBE = 2  # null, or 0.0, if nothing is there


FULL, HOLEY, MAYBE = Presence.FULL, Presence.HOLEY, Presence.MAYBE


@node
class Part:
    """A leaf of a tangent or cotangent."""

    atom: f.Atom
    presence: Presence = FULL

    @property
    def nullable(self) -> bool:
        return self.presence is MAYBE and not f.is_float(self.atom.ty)

    def part(self, ty: f.Type) -> Presence:
        """What is known of a piece, of leaf type `ty`, read from this array or data."""
        if isinstance(self.atom.ty, f.Arr) and f.is_float(self.atom.ty.elem) and self.presence is not MAYBE:
            return self.presence if isinstance(ty, f.Arr) else FULL if self.presence is FULL else MAYBE
        return MAYBE

    def part_of_sum(self, ty: f.Type) -> Presence:
        """Of a contribution of leaf type `ty` made from this one: a float sums everything, nothing included."""
        return FULL if self.presence is FULL else HOLEY if isinstance(ty, f.Arr) else MAYBE

    @property
    def holes(self) -> bool:
        """Whether zero stands for nothing."""
        return self.presence is not FULL


def whole(parts: Iterable[Part]) -> Presence:
    """Of an array made of parts that are all there (arrays without null among them)."""
    return FULL if all(p.presence is FULL for p in parts) else HOLEY


def together(a: Presence, b: Presence) -> Presence:
    """Of a sum."""
    return min(a, b)


def either(parts: Iterable[Part | None]) -> Presence:
    """Of what is one of several; None is absent."""
    return max((MAYBE if p is None else p.presence for p in parts), default=MAYBE)


def atom_of(part: Part | None, leaf: f.Type) -> f.Atom:
    return zero(leaf) if part is None else part.atom
