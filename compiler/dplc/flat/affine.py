"""Whole numbers as sums: of constants, lengths, indices of loops and other variables, each with a factor.

i < n        j = add i 1; k = mul 2 j          k is 2 i + 2, between 2 and 2 n
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dplc.flat import term as f
from dplc.flat.dims import Dims
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS

LARGEST, MOST = 1 << 32, 1 << 16  # of constants and of factors
FAR = 1 << 62  # from a number that is natural, less than this cannot be taken so that it overflows

Sum = dict[object, int]  # terms and their factors; the constant is that of 1
ONE = 1

DEEP = 5  # cuts of cuts that are looked through, each of which asks two questions
ASKED = 64  # facts, the latest ones: each branch in branches adds some, and each question goes through them


class Affine:
    """The numbers of a function.  `sums` has the values of variables, `counts` the lengths of loops, by their indices;
    a term (name, k) is dimension k of an array.  Numbers that overflow are what they are as sums, which wrap as they
    do, so an index whose sum lies within a length is that sum.  What is said of numbers, by facts, counts and lengths,
    holds only of sums that cannot overflow (`exact`)."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims
        self.sums: dict[str, Sum] = {}
        self.counts: dict[object, Sum] = {}
        self.trips: dict[str, Sum] = {}  # what counts are if there are steps
        self.cuts: dict[str, f.Op] = {}  # the lesser or greater one of two numbers
        self.wide: set[str] = set()  # rests of divisions by what may be near the greatest integer
        self.negative: dict[str, f.Atom] = {}  # what a condition asks to be negative
        self.facts: list[Sum] = []  # sums that are 0 or greater here, the latest last (`conditions.py`)
        self.arrays: dict[str, f.Var] = {}  # those whose lengths are terms
        self.bounded: set[str] = set()  # numbers that are lengths of arrays here, or differ from one by little

    def loop(self, index: f.Var, count: f.Atom) -> None:
        """Notes that an index goes from 0 to a count of steps."""
        self.counts[index.name] = self.trip(count)

    def loops(self, rhs: f.Rhs) -> None:
        """Notes how many values the indices of a loop or of points have."""
        match rhs:
            case f.For(index, count):
                self.loop(index, count)
            case f.Build(index, count):
                self.bound(count)
                self.loop(index, count)
            case f.Par(space):  # how many points the outermost index has is checked before them
                self.bound(space[0][1])
                for index, count in space:
                    self.loop(index, count)
            case _:
                pass

    def trip(self, count: f.Atom) -> Sum:
        """What a count is, if a loop has any steps."""
        known = self.trips.get(count.name) if isinstance(count, f.Var) else None
        return self.exact(count) if known is None else known

    def define(self, bind: f.Bind) -> None:
        """Notes what an operation gives, if it is a sum, or a place on a ring; and how long the arrays are that a
        right-hand side makes."""
        for var in bind.vars:
            if type(var.ty) is f.Arr and isinstance(length := self.dims.of(var, 0), f.Var):
                self.bound(length)
        if not isinstance(bind.rhs, f.Op) or len(bind.vars) != 1:
            return
        self.chosen(bind.vars[0].name, bind.rhs)
        if bind.rhs.attr("ring") or self.is_rest(bind.rhs):
            self.rest(bind.vars[0].name, self.exact(bind.rhs.args[1]))
        elif bind.rhs.op in ("min", "max") and bind.vars[0].ty == f.I64:
            self.cuts[bind.vars[0].name] = bind.rhs
        elif OPS[bind.rhs.op].finds:
            self.found(bind.vars[0], bind.rhs.args[0])
        elif (total := self.total(bind.rhs)) is not None:
            self.sums[bind.vars[0].name] = total
        else:
            self.divided(bind.vars[0].name, bind.rhs)

    def bound(self, length: f.Atom) -> None:
        """Notes that a number is the length of an array.  No memory holds so many elements that it could be near the
        greatest integer, so what differs from it by lengths and indices is far from that, too."""
        total = self.sum(length)
        others = [term for term in total if not self.is_small(term)]
        if len(others) == 1 and abs(total[others[0]]) == 1:
            self.bounded.add(str(others[0]))

    def rest(self, name: str, count: Sum) -> None:
        """Notes the range of the rest of a division."""
        self.counts[name] = count
        if not all(map(self.is_small, count)) or count.get(ONE, 0) > LARGEST:
            self.wide.add(name)

    def divided(self, name: str, op: f.Op) -> None:
        """Notes that n times the quotient by n is not greater than what is divided; and the range of a quotient of what
        is natural and has a constant as its greatest value, as that of an index."""
        match op.op, op.args:
            case "div", (a, f.Const(int(n), f.I64)) if 0 < n < MOST and all(map(self.is_small, total := self.sum(a))):
                if self.is_exact(total):
                    self.facts.append(combined(total, {name: 1}, -n))
                least = self.least(combined({}, total, -1))
                if set(least) == {ONE} and self.is_natural(total):
                    self.counts[name] = {ONE: -least[ONE] // n + 1}
            case _:
                pass

    def chosen(self, name: str, op: f.Op) -> None:
        """Notes what a count is that is 0 under a condition, or a constant where it overflowed."""
        match op.op, op.args:
            case "lt", (asked, f.Const(0, f.I64)):
                self.negative[name] = asked
            case "select", (_, count, f.Const(0, f.I64)):
                self.trips[name] = self.trip(count)
            case "select", (f.Var(cond), f.Const(int(), f.I64), count) if self.negative.get(cond) == count:
                self.trips[name] = self.trip(count)
            case _:
                pass

    def found(self, place: f.Var, array: f.Atom) -> None:
        """Notes that a place that was found in an array is one of its elements'; an array without elements has none."""
        length = self.dims.of(array, 0)
        if isinstance(length, f.Const) and isinstance(length.value, int) and length.value > 0:
            self.loop(place, length)

    def is_rest(self, op: f.Op) -> bool:
        """True for the rest of a division by a length, or by a positive constant: by 0 there is none."""
        if op.op != "mod" or op.args[0].ty != f.I64:
            return False
        return self.is_natural(self.exact(op.args[1]))

    def on_ring(self, op: f.Op) -> tuple[str, int, int] | None:
        """For an operand i + c + t n of `mod`, where n is the length and i the index of a loop of n steps: i, c and t.
        The operand must be at least -n and less than 2 n, for every n that the length can be.  Of several c it is the
        least one."""
        if op.op != "mod" or op.args[0].ty != f.I64:
            return None
        length, at = self.sum(op.args[1]), self.sum(op.args[0])
        least = length[ONE] if set(length) == {ONE} else 1  # n
        found: list[tuple[str, int, int]] = []
        for turns in (0, 1, -1):
            rest = combined(at, length, -turns)
            index = next((str(term) for term in rest if term in self.counts), "")
            constant = rest.get(ONE, 0)
            if set(rest) - {ONE} == {index} and rest[index] == 1 and self.counts[index] == length:
                if -(turns + 1) * least <= constant <= (1 - turns) * least:
                    found.append((index, constant, turns))
        return min(found, key=lambda place: abs(place[1]), default=None)

    def turned(self, op: f.Op) -> tuple[str, int] | None:
        """For an operand i + c + t n of `mod`, where n is the length, i the index of a loop of n steps, and t any
        number: i and c, so that `mod` gives (i + c) mod n.  -n <= c <= n for every n that the length can be."""
        if op.op != "mod" or op.args[0].ty != f.I64:
            return None
        length, at = self.sum(op.args[1]), self.sum(op.args[0])
        index = next((str(term) for term, factor in at.items() if factor == 1 and self.counts.get(term) == length), "")
        if not index or len(length) != 1 or not self.is_exact(at):
            return None
        ((term, factor),) = length.items()
        rest = combined(at, {index: 1}, -1)
        turns = rest.get(term, 0) // factor if factor > 0 else 0
        rest = combined(rest, length, -turns)
        constant = rest.get(ONE, 0)
        if not set(rest) <= {ONE} or (term != ONE and abs(constant) > 1):
            return None
        return index, min(constant, constant - factor, key=abs) if term == ONE else constant

    def total(self, op: f.Op) -> Sum | None:
        """The value of an operation as a sum."""
        match op.op, op.args:
            case "dim", (array,):
                return self.length(self.dims.of(array, op.attr("k")))
            case "add" | "sub" as name, (a, b) if a.ty == f.I64:
                return short(combined(self.sum(a), self.sum(b), 1 if name == "add" else -1))
            case "mul", (f.Const(int(n), f.I64), a) | (a, f.Const(int(n), f.I64)):
                return short(combined({}, self.sum(a), n))
            case _:
                return None

    def difference(self, op: f.Op) -> Sum | None:
        """The first less the second operand, of an operation on two whole numbers."""
        if len(op.args) != 2 or op.args[0].ty != f.I64:
            return None
        left, right = map(self.sum, op.args)
        return combined(left, right, -1)

    def sum(self, atom: f.Atom) -> Sum:
        """What an atom is, as a sum; a variable of which nothing is known is itself.  A constant that is no whole
        number has no terms.
        """
        if isinstance(atom, f.Const):
            return {ONE: atom.value} if isinstance(atom.value, int) else {}
        return self.sums.get(atom.name, {atom.name: 1})

    def exact(self, atom: f.Atom) -> Sum:
        """The sum that an atom is, if that cannot overflow; else the variable itself."""
        if isinstance(atom, f.Const) or atom.name not in self.sums:
            return self.sum(atom)
        total = self.sums[atom.name]
        return total if self.is_exact(total) else {atom.name: 1}

    def length(self, dim: Dim | None) -> Sum | None:
        """A dimension as a sum; None if it is not known."""
        match dim:
            case None:
                return None
            case (array, k):
                self.arrays[array.name] = array
                return {(array.name, k): 1}
            case atom:
                return self.exact(atom)

    def fits(self, index: f.Atom, array: f.Atom, k: int) -> bool:
        """True if it is known that 0 <= index < dimension k of the array."""
        length = self.length(self.dims.of(array, k))
        if length is None or not self.holds(index, self.is_natural, "max"):
            return False
        last = combined(length, {ONE: 1}, -1)
        return self.holds(index, lambda at: self.is_natural(combined(last, at, -1)), "min")

    def is_place(self, lengths: Sequence[f.Atom], places: Sequence[f.Atom]) -> bool:
        """True if it is known that an array of these lengths has an element at these places."""
        for length, at in zip(lengths, map(self.sum, places), strict=True):
            last = combined(self.exact(length), combined(at, {ONE: 1}, 1), -1)
            if not (self.is_natural(at) and self.is_natural(last)):
                return False
        return True

    def differ(self, a: f.Atom, b: f.Atom) -> bool:
        """True if two numbers are known not to be equal."""
        apart = combined(self.exact(a), self.exact(b), -1)
        return any(self.is_natural(combined({ONE: -1}, apart, sign)) for sign in (1, -1))

    def holds(self, number: f.Atom, asked: Callable[[Sum], bool], either: str, deep: int = 0) -> bool:
        """True if something is known of a number; of what is cut off, where it is known of one or of both numbers.
        Those must not overflow: what is cut off from above may be far below, and is then no place."""
        op = self.cuts.get(number.name) if isinstance(number, f.Var) and deep < DEEP else None
        if op is None:
            return asked(self.sum(number)) and (deep == 0 or self.is_exact(self.sum(number)))
        return (any if op.op == either else all)(self.holds(a, asked, either, deep + 1) for a in op.args)

    def is_natural(self, total: Sum) -> bool:
        """True if it is known that a sum is 0 or greater."""
        return any(is_positive(self.least(combined(total, fact, -1))) for fact in self.known())

    def known(self) -> tuple[Sum, ...]:
        """Sums that are 0 or greater here: 0, and what the nearest conditions say."""
        return ({}, *self.facts[-ASKED:])

    def is_small(self, term: object) -> bool:
        """True for a constant, a length and an index, which are far from the greatest integer."""
        if term == ONE or isinstance(term, tuple) or term in self.bounded:
            return True
        return term in self.counts and term not in self.wide

    def is_exact(self, total: Sum) -> bool:
        """True for a sum that cannot overflow: of lengths and indices; and of one other number where the rest of the
        sum goes away from the end of the integers that the number may be near to."""
        others = [term for term in total if not self.is_small(term)]
        if not others:
            return True
        if len(others) > 1 or total[others[0]] != 1:
            return False
        if len(total) == 1:
            return True
        rest = combined(total, {others[0]: 1}, -1)
        low = self.is_natural(rest) or self.is_natural(combined(total, {ONE: FAR}, 1))
        return low and (self.is_natural(combined({}, rest, -1)) or self.is_natural(combined({ONE: FAR}, total, -1)))

    def least(self, total: Sum) -> Sum:
        """The least value of a sum in its loops: the indices are replaced by the values that make it least."""
        while (index := self.innermost(total)) is not None:
            factor = total[index]
            total = combined(total, {index: 1}, -factor)
            if factor < 0:  # the last step
                total = combined(total, combined(self.counts[index], {ONE: 1}, -1), factor)
        return total

    def innermost(self, total: Sum) -> object | None:
        """An index in a sum on which the counts of no others depend; None if there is no index."""
        loops = [term for term in total if term in self.counts]
        inner = [index for index in loops if all(index not in self.counts[other] for other in loops)]
        return next(iter(inner or loops), None)


def is_positive(total: Sum) -> bool:
    """True if a sum has nothing but lengths and a constant, none of them negative."""
    return all(factor >= 0 and (term == ONE or isinstance(term, tuple)) for term, factor in total.items())


def combined(a: Sum, b: Sum, factor: int) -> Sum:
    """a + factor * b"""
    made = dict(a)
    for term, n in b.items():
        made[term] = made.get(term, 0) + factor * n
    return {term: n for term, n in made.items() if n}


def natural_where(comparison: str, difference: Sum) -> Sum | None:
    """The sum that is 0 or greater where a comparison of two whole numbers of this difference holds; None for others
    than those of order."""
    sign = OPS[comparison].sign
    if sign is None:
        return None
    factor, less = sign
    return combined({ONE: -less} if less else {}, difference, factor)


def below(total: Sum) -> Sum:
    """The sum that is 0 or greater where this one is negative."""
    return combined({ONE: -1}, total, -1)


def short(total: Sum) -> Sum | None:
    """The sum, if its factors are so small that sums of lengths cannot overflow."""
    return total if all(abs(n) < (LARGEST if term == ONE else MOST) for term, n in total.items()) else None
