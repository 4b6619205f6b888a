"""Lengths of accumulators that may be those of the places that loops add to: then the sums have a simpler form.

par i < n + 1 to add (c) {                     c may have the length n
  g = eq i n
  if g { c } else { acc_index c x m i } }
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined
from dplc.flat.conditions import Conditions
from dplc.flat.walk import blocks, bound_inside, names

FEWER = 2  # steps at the end of a loop that may not add, by the conditions around an addition


def counts_of_lengths(par: f.Par, affine: Affine) -> dict[str, tuple[f.Atom, int]]:
    """Guesses of lengths of accumulators that loops add to at their index and a constant: the name of a length -> the
    count of the loop, and by how much the length exceeds it.  Each guess may be true, and is not known to be.  If the
    length is a known number, the count is guessed from it."""
    ends = _Ends(affine)
    ends.par(par)
    inside = {var.name for var in bound_inside(par)}
    found = {name: (count, ends.guess(count, more)) for name, (count, more) in ends.found.items()}
    found = {name: (length, -ends.guess(count, more)) for name, (length, count, more) in ends.known.items()} | found
    return {
        name: (count, more) for name, (count, more) in found.items()
        if inside.isdisjoint((name, *names((count,))))
        and may_be_equal(affine.sums.get(name, {name: 1}), combined(affine.sum(count), {ONE: 1}, more))
    }  # fmt: skip


class _Ends:
    """The last places that a nest adds to.  `found` has, by lengths, a count and how far the last place is beyond its
    last step; `known` has lengths that are numbers, by counts that are not, with the count."""

    def __init__(self, affine: Affine) -> None:
        self.affine = affine
        self.conditions = Conditions(affine)
        self.counts: dict[object, f.Atom] = {}
        self.found: dict[str, tuple[f.Atom, int]] = {}
        self.known: dict[str, tuple[f.Const, f.Var, int]] = {}

    def par(self, par: f.Par) -> None:
        self.affine.loops(par)
        self.counts |= {index.name: count for index, count in par.space}
        self.block(par.body)

    def block(self, block: f.Block) -> f.Block:
        for bind in block.binds:
            self.affine.define(bind)
            self.conditions.define(bind)
            match bind.rhs:
                case f.Par() as par:
                    self.par(par)
                case f.If() as branch:
                    self.conditions.branches(branch, self.block)
                case f.Op("acc_index", (_, _, *rest)) as op if len(rest) == 2 * (rank := op.attr("rank")):
                    for length, place in zip(rest[:rank], rest[rank:], strict=True):
                        self.add(length, place)
                case rhs:
                    for inner in blocks(rhs):
                        self.block(inner)
        return block

    def add(self, length: f.Atom, place: f.Atom) -> None:
        total = self.affine.sum(place)
        indices = [str(term) for term in total if term in self.counts]
        if len(indices) != 1 or total[indices[0]] != 1:
            return
        count, more = self.counts[indices[0]], total.get(ONE, 0)
        last = combined(combined(self.affine.sum(count), {ONE: 1}, -1), total, -1)
        enough = [n for n in range(more - FEWER, more) if self.affine.is_natural(combined(last, {ONE: 1}, n))]
        least = min(enough, default=more)
        if isinstance(length, f.Const):
            if isinstance(count, f.Var):
                self.known.setdefault(count.name, (length, count, least))
            return
        before = self.found.get(length.name)
        if before is not None and self.affine.sum(before[0]) == self.affine.sum(count):
            least = max(least, before[1])
        self.found[length.name] = count, least

    def guess(self, count: f.Atom, more: int) -> int:
        """What a length is beyond a count.  Arrays are as long as needed; those that have a border to which nothing is
        added are as long as the loop, if its count is no sum: n points have n - 1 differences, and n + 1 faces."""
        return more if more > 0 or ONE not in combined(self.affine.sum(count), {ONE: 1}, more) else 0


def may_be_equal(a: Sum, b: Sum) -> bool:
    """True for a length of which nothing is known, and another one, beside a constant, or a constant."""
    others = [factor for term, factor in b.items() if term != ONE]
    return list(a.values()) == [1] and a.keys().isdisjoint(b) and others in ([], [1])
