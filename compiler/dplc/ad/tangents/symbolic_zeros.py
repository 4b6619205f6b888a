"""Symbolic zeros: zero tangents of values that do not depend on the input.

Zero comes in two kinds.  A number that happens to be 0.0 follows IEEE: 0.0 * inf is NaN.  A *symbolic zero* is the
derivative of a value that does not depend on the input: it contributes exactly nothing, even through an infinite
derivative.

A symbolic zero that is known at compile time has no variable: its `Part` is `None`.  One that is known only at run
time, as after a branch that did not touch a variable, is 0.0 for a float and null for an array or data.  What tells a
float that is a symbolic zero from a number is a condition, or a count of contributions:

    if c { yield 2.0 * t } else { yield 0.0 }       absent: not c
    for i < n state (s = 0.0, k = 0.0)              count: k, as sums in loops without an order stay such sums
      ...; yield s + t, k + 1.0

Results of branches and states of loops come with theirs; those that no product asks for are dead code.  In data, and
between functions, a symbolic zero is -0.0, which sums leave as it is, and which numbers beside it never are (`signed`).
Among the elements of an array, and in what is added to these, every zero that may be a symbolic one is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import reduce

from dpl.node import node

from dplc.ad.tangents.types import positive, zero
from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.types import elem_of


class Zeros(IntEnum):
    """The places where a tangent may be a symbolic zero.  A greater value means less is known."""

    NONE = 0  # nowhere
    ELEMENTS = 1  # some elements of an array that is not null itself
    WHOLE = 2  # all of it: it may be null, or 0.0


NO_ZEROS, ZERO_ELEMENTS, MAYBE_ZERO = Zeros.NONE, Zeros.ELEMENTS, Zeros.WHOLE


class Told(IntEnum):
    """How the symbolic zeros of a float are told from numbers.  A greater value means more is known."""

    BY_VALUE = 0  # a number that is 0.0 is taken for one
    BY_MARK = 1  # by a condition or a count; what it was made of may have been told by its value
    CERTAINLY = 2  # no number was ever taken for one


@node
class Part:
    """A leaf of a tangent or cotangent.  A float with MAYBE_ZERO is a symbolic zero if the condition `absent` is true,
    or if `count` is 0.0.  If neither is given, it is taken for one if it is 0.0, or, as a multiple of a number `value`
    that may be one, if this is 0.0.  `signed`: it is as in data.  `certain`: there it is one for
    certain, and no number that is 0.0, whose own derivative may not be.  `unused`: where this condition is true it is
    one for certain, as what `min` has not chosen is, whatever it may be elsewhere."""

    atom: f.Atom
    zeros: Zeros = NO_ZEROS
    absent: f.Atom | None = None
    count: f.Atom | None = None
    value: f.Atom | None = None
    signed: bool = False
    certain: bool = False
    unused: f.Atom | None = None

    @property
    def exact(self) -> bool:
        """False for a float whose symbolic zeros are not told from numbers."""
        known = self.zeros is NO_ZEROS or self.absent is not None or self.count is not None
        return known or not f.is_float(self.atom.ty)

    def alike(self, atom: f.Atom, zeros: Zeros) -> Part:
        """Another part, which is a symbolic zero where this one is."""
        value = self.value or (None if self.exact else self.atom)
        return Part(atom, zeros, self.absent, self.count, value, certain=self.certain, unused=self.unused)

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


def absence(b: Builder, part: Part | None) -> f.Atom:
    """The condition under which a float, or each element of an array, is a symbolic zero."""
    if part is None or part.zeros is NO_ZEROS:
        return f.Const(part is None, f.BOOL)
    value = part.count or part.value or part.atom
    return part.absent or b.op("eq", (value, f.Const(0.0, elem_of(value.ty))))


def nowhere(b: Builder, parts: Sequence[Part]) -> f.Atom | None:
    """A condition under which all parts are symbolic zeros for certain; None if none is known."""
    told = [part.nullable or part.unused or (part.zeros is MAYBE_ZERO and part.certain) for part in parts]
    return all_of(b, [nothing(b, part) for part in parts]) if all(told) else None


def nothing(b: Builder, part: Part) -> f.Atom:
    """The condition under which a part is a symbolic zero for certain, where one is known."""
    if part.nullable:
        return b.op("is_null", (part.atom,))
    return absence(b, part) if part.certain or part.unused is None else part.unused


def contributions(b: Builder, part: Part | None) -> f.Atom:
    """How many contributions a float has, 0.0 if it is a symbolic zero."""
    if part is None or part.zeros is NO_ZEROS:
        return (part and part.count) or f.Const(float(part is not None), f.F64)
    return part.count or b.op("select", (absence(b, part), f.Const(0.0, f.F64), f.Const(1.0, f.F64)))


def total(b: Builder, atom: f.Atom, parts: Sequence[Part]) -> Part:
    """A sum of parts, with its zeros."""
    zeros = reduce(together, (part.zeros for part in parts))
    if all(part.signed for part in parts):
        return by_sign(b, atom, certain=all_certain(parts))  # the sum of numbers that are not -0.0 is not, either
    counted = any(part.count for part in parts)  # of a sum that is a number in any case, too: the loop goes on counting
    if not f.is_float(atom.ty) or not all(part.exact for part in parts) or (zeros is NO_ZEROS and not counted):
        return Part(atom, zeros)
    if counted:
        return Part(
            atom, zeros, count=reduce(lambda x, y: b.op("acc_add", (x, y)), [contributions(b, p) for p in parts])
        )
    absent = all_of(b, [absence(b, part) for part in parts])
    return Part(atom, zeros, absent, certain=all_certain(parts))


def all_of(b: Builder, conditions: Iterable[f.Atom]) -> f.Atom:
    """The condition that all of these, at least one, are true."""
    return reduce(lambda x, y: b.op("and", (x, y)), dict.fromkeys(conditions))


def how_told(parts: Iterable[Part | None]) -> Told:
    """How the symbolic zeros of all floats among these are told."""
    floats = [part for part in parts if part is not None and f.is_float(part.atom.ty)]
    if all_certain(floats):
        return Told.CERTAINLY
    return Told.BY_MARK if all(part.exact for part in floats) else Told.BY_VALUE


def all_certain(parts: Iterable[Part | None]) -> bool:
    """True if no number among these is taken for a symbolic zero."""
    return all(part is None or part.zeros is NO_ZEROS or part.certain for part in parts)


def marks(
    blocks: Sequence[Builder], ends: Sequence[Part | None], cond: f.Atom | None, before: Part | None = None
) -> list[f.Atom] | None:
    """What the blocks of a branch on `cond` yield to tell whether a float that they end with is a symbolic zero; None
    if that is not needed, or not known.  `before` is the part before the branch: a count goes on in all blocks."""
    given = [end for end in ends if end is not None]
    if not given or either(ends) is NO_ZEROS or not f.is_float(given[0].atom.ty) or not all(e.exact for e in given):
        return None
    if by_branch(cond, ends) or same_mark(ends) or all_signed(ends):
        return None
    if not any(end.count for end in given):
        return [absence(b, end) for b, end in zip(blocks, ends, strict=True)]
    return [one_more(b, before, end) for b, end in zip(blocks, ends, strict=True)]


def one_more(b: Builder, before: Part | None, end: Part | None) -> f.Atom:
    """How many contributions a float has at the end of a block.  What was counted before is added to, so that the count
    of a loop without an order stays a sum."""
    if before is None or before.count is None or end is None or end.zeros is not NO_ZEROS:
        return contributions(b, end)
    return b.op("acc_add", (before.count, f.Const(1.0, f.F64)))


def by_branch(cond: f.Atom | None, ends: Sequence[Part | None]) -> bool:
    """True if the condition of a branch tells whether its result is a symbolic zero."""
    one_way = any(ends) and None in ends and all(end is None or end.zeros is NO_ZEROS for end in ends)
    return cond is not None and one_way


def same_mark(ends: Sequence[Part | None]) -> bool:
    """True if several branches end with what was before them, as far as symbolic zeros go."""
    found = {None if end is None or end.zeros is NO_ZEROS else (end.absent, end.count) for end in ends}
    return len(ends) > 1 and len(found) == 1 and found != {None}


def all_signed(ends: Sequence[Part | None]) -> bool:
    """True if all that branches end with is as in data."""
    return any(ends) and all(end is None or end.signed for end in ends)


def end_of(k: int, ends: Sequence[Part | None], leaf: f.Type) -> f.Atom:
    """What block `k` of a branch yields for a leaf."""
    end = ends[k]
    return f.Const(-0.0, leaf) if end is None and all_signed(ends) else atom_of(end, leaf)


def after_branch(
    b: Builder, out: f.Atom, mark: f.Atom | None, cond: f.Atom | None, ends: Sequence[Part | None]
) -> Part:
    """A result of a branch.  `mark` is what its blocks yield beside it."""
    zeros = either(ends)
    if mark is not None:
        absent, count = (mark, None) if mark.ty == f.BOOL else (None, mark)
        unused = None if cond is None or None not in ends else cond if ends[0] is None else b.op("not", (cond,))
        return Part(out, zeros, absent, count, certain=all_certain(ends), unused=unused)
    if zeros is NO_ZEROS or not f.is_float(out.ty):
        return Part(out, zeros)
    if cond is not None and by_branch(cond, ends):
        return Part(out, zeros, cond if ends[0] is None else b.op("not", (cond,)), certain=True)
    if same_mark(ends) and (same := ends[0]) is not None:
        return Part(out, zeros, same.absent, same.count, signed=all_signed(ends), certain=all_certain(ends))
    return by_sign(b, out, certain=all_certain(ends)) if all_signed(ends) else Part(out, zeros)


def after_loop(b: Builder, out: f.Atom, mark: f.Atom | None, steps: f.Atom | None, ends: Sequence[Part | None]) -> Part:
    """A result of a loop.  `ends` are what it is after no step and after one or more, `mark` the state beside it."""
    before, after = ends
    zeros = either(ends)
    if zeros is NO_ZEROS or not f.is_float(out.ty):
        return Part(out, zeros)
    if steps is not None and after is not None and after.zeros is NO_ZEROS:
        added = Part(out, zeros, b.op("le", (steps, f.Const(0, f.I64))), certain=True)
        return added if before is None else total(b, out, (before, added))
    if mark is None or not (after is None or after.exact):
        return Part(out, zeros)
    absent, count = (mark, None) if mark.ty == f.BOOL else (None, mark)
    return Part(out, zeros, absent, count, certain=all_certain(ends))


SIGN_BITS = {"f64": ("u64", 63), "f32": ("u32", 31), "f16": ("u16", 15)}


def signed(b: Builder, part: Part | None, leaf: f.Type) -> f.Atom:
    """The leaf as it is in data: a float that is a symbolic zero is -0.0, and no number is."""
    if part is None or not f.is_float(leaf):
        return f.Const(-0.0, leaf) if f.is_float(leaf) else atom_of(part, leaf)
    if part.signed:
        return part.atom
    if part.exact:
        number = positive(b, part.atom)
        if part.zeros is NO_ZEROS:
            return number
        return b.op("select", (absence(b, part), f.Const(-0.0, leaf), number), absent=True)  # `number` is 0.0 there
    return b.op("neg", (b.op("sub", (zero(leaf), part.atom)),))  # -0.0 for 0.0; its own derivative is there at 0.0, too


def by_sign(b: Builder, atom: f.Atom, zeros: Zeros = MAYBE_ZERO, certain: bool = False) -> Part:
    """A leaf that was in data, or between functions; there it is in this form only if `zeros` say that it may be a
    symbolic zero."""
    if zeros is not MAYBE_ZERO or not f.is_float(atom.ty):
        return Part(atom, zeros)
    assert isinstance(atom.ty, f.Num)
    bits, sign = SIGN_BITS[atom.ty.name]
    absent = b.op("eq", (b.op("bitcast", (atom,), to=bits), f.Const(1 << sign, f.Num(bits))))
    return Part(atom, zeros, absent, signed=True, certain=certain)


def sent(b: Builder, part: Part | None, leaf: f.Type) -> f.Atom:
    """The leaf as it is between functions."""
    return atom_of(part, leaf) if part is not None and part.zeros is not MAYBE_ZERO else signed(b, part, leaf)


def atom_of(part: Part | None, leaf: f.Type) -> f.Atom:
    """A tangent as an atom; a symbolic zero is a zero of its leaf's type."""
    return zero(leaf) if part is None else part.atom
