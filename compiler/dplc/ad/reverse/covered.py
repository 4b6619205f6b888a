"""Which places of an array a loop fills with numbers, so that its cotangent has no symbolic zeros.

    for i < n - 1 { ... index q i ... }                              all places of q, which has n - 1
    for i < 8 { if gt i 0 { ... index q (sub i 1) ... };             places 0 to 6 of q, and 0 to 7
                ... index q i ... }

Places are compared where lengths are known; the steps for which conditions hold are intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, natural_where

Guard = tuple[f.Atom, bool]  # a condition, and whether it holds
Intervals = tuple[tuple[int, int], ...]  # disjoint, in order: from, and up to


@node
class Filled:
    """A part of an array, at some indices, to whose cotangent numbers are added under these conditions."""

    array: f.Atom
    at: tuple[f.Atom, ...]
    guards: frozenset[Guard] = frozenset()


class Steps:
    """The steps of a loop of `count` steps.  `makers` are the bindings of variables, `affine` has their sums."""

    def __init__(self, makers: Mapping[str, f.Bind], affine: Affine, index: f.Var, count: int) -> None:
        self.makers, self.affine, self.index, self.count = makers, affine, index, count
        affine.loop(index, f.Const(count, f.I64))

    def places(self, at: f.Atom, guards: Iterable[Guard], length: int) -> Intervals | None:
        """The places of an array at this index, in the steps for which the conditions hold; None if it is not known."""
        found = [self.where(cond, truth) for cond, truth in guards]
        steps = reduce(common, [some for some in found if some is not None], self.all())
        if None in found:
            return None
        made = self.makers.get(at.name) if isinstance(at, f.Var) else None
        if made is not None and isinstance(made.rhs, f.Op) and (ring := self.affine.turned(made.rhs)) is not None:
            whole = ring[0] == self.index.name and self.count == length and steps == self.all()
            return ((0, length),) if whole else None
        total = self.affine.sum(at)
        more, factor = total.get(ONE, 0), total.get(self.index.name, 0)
        if not set(total) <= {self.index.name, ONE} or factor not in (0, 1):
            return None
        if not factor:
            return ((more, more + 1),) if steps else ()
        return tuple([(low + more, high + more) for low, high in steps])

    def all(self) -> Intervals:
        """All steps of the loop."""
        return ((0, self.count),) if self.count > 0 else ()

    def others(self, steps: Intervals) -> Intervals:
        """The steps that are not among these."""
        ends = [0, *[end for interval in steps for end in interval], self.count]
        return tuple([(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True) if low < high])

    def where(self, cond: f.Atom, truth: bool) -> Intervals | None:
        """The steps in which a condition is true, or false."""
        found = self.holds(cond)
        return found if found is None or truth else self.others(found)

    def holds(self, cond: f.Atom) -> Intervals | None:
        """The steps for which a condition holds; None if that is not known."""
        if not isinstance(cond, f.Var):
            return self.all() if cond.value else ()
        bind = self.makers.get(cond.name)
        match bind.rhs if bind is not None else None:
            case f.If(asked, then, other):
                assert bind is not None
                k = bind.vars.index(cond)
                return self.chosen(asked, then.results[k], other.results[k])
            case f.Op("select" | "and" | "or" | "not" as op, args):
                yes, no = f.Const(True, f.BOOL), f.Const(False, f.BOOL)
                three = {"and": (*args, no), "or": (args[0], yes, args[-1]), "not": (args[0], no, yes)}
                return self.chosen(*three.get(op, args))
            case f.Op() as op:
                return self.compared(op)
            case _:
                return None

    def chosen(self, cond: f.Atom, then: f.Atom, other: f.Atom) -> Intervals | None:
        where, yes, no = map(self.holds, (cond, then, other))
        if where is None or yes is None or no is None:
            return None
        return united([*common(where, yes), *common(self.others(where), no)])

    def compared(self, op: f.Op) -> Intervals | None:
        """The steps in which a comparison of the index with a number holds."""
        apart = self.affine.difference(op)
        if apart is None or not set(apart) <= {self.index.name, ONE} or abs(apart.get(self.index.name, 0)) != 1:
            return None
        if op.op in ("eq", "ne"):
            at = -apart.get(ONE, 0) * apart[self.index.name]
            return self.where_not(common(self.all(), ((at, at + 1),)), op.op == "ne")
        total = natural_where(op.op, apart)
        if total is None:
            return None
        rest = total.get(ONE, 0)
        return common(self.all(), ((-rest, self.count),) if total[self.index.name] > 0 else ((0, rest + 1),))

    def where_not(self, steps: Intervals, other: bool) -> Intervals:
        return self.others(steps) if other else steps


def common(one: Intervals, other: Intervals) -> Intervals:
    """What is in both."""
    pairs = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return tuple([(low, high) for low, high in pairs if low < high])


def united(parts: Iterable[tuple[int, int]]) -> Intervals:
    """What is in any of these intervals."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if made and low <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], high)
        else:
            made.append((low, high))
    return tuple(made)


def whole_where(
    parts: Sequence[tuple[frozenset[Guard], Intervals | None]], length: int | None
) -> Iterator[frozenset[Guard]]:  # fmt: skip
    """The conditions under which all places of an array of this length are filled.  Each part says under which
    conditions it fills which places; None for all of them."""
    for guards in dict.fromkeys(guards for guards, _ in parts):
        some = [places for under, places in parts if under <= guards]
        known = united([one for places in some if places is not None for one in places])
        if None in some or any(length is not None and low <= 0 and high >= length for low, high in known):
            yield guards


def in_arms(arms: Sequence[Collection[Filled]], cond: f.Atom | None) -> dict[Filled, None]:
    """What is filled after a branch: in all arms, or in one of those of a condition."""
    found = dict.fromkeys(part for part in arms[0] if all(part in arm for arm in arms))
    if cond is not None and len(arms) == 2:
        for arm, truth in zip(arms, (True, False), strict=True):
            rest = [part for part in arm if part not in found]
            found |= dict.fromkeys(Filled(part.array, part.at, part.guards | {(cond, truth)}) for part in rest)
    return found
