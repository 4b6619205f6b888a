"""Loops that do at the borders of their index space what they do not do between them, are written twice (index set
splitting; Griebl, Feautrier and Lengauer 2000).

    for i < n { j = mod (i + 1) n                  for i in 0, n - 1 { ... as it is ... }    the borders
                first = eq i 0
                l = if first { 0.0 }       =>      for 1 <= i < n - 1 { j = i + 1
                    else { index a (i - 1) }                            l = index a (i - 1)
                ... }                                                   ... }   LLVM makes vectors of it

In a nest, rows at a border are done as they are; those between have this loop.  Conditions of two indices, or far from
the borders, stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, combined, natural_where
from dplc.flat.build import integer
from dplc.flat.dims import dims_of
from dplc.flat.ops.table import OPS
from dplc.flat.remembered import remembered
from dplc.flat.walk import every, mentions, names, rebuild, rhs_mentions, unchanged, with_binds, with_rhs
from dplc.passes.simplify.fold import fold
from dplc.passes.simplify.purity import droppable

MOST = 512  # operations of a loop that is written twice
FAR = 2  # steps of a border, in a space of any length
NEAR = 5  # of a known length these are at most a fifth: most points lie between the borders

Space = Sequence[tuple[f.Var, f.Atom]]


@node
class Middle:
    """What points do between the borders; `same` are results of branches, with what they are.  `borders` has how many
    steps of an index lie at its two borders.  If points may fail, they are done in order: the first failure is told."""

    binds: tuple[f.Bind, ...]
    same: tuple[tuple[f.Var, f.Atom], ...]
    borders: dict[str, tuple[int, int]]
    in_order: bool


def middle(
    space: Space, before: Sequence[f.Bind], binds: Sequence[f.Bind], branches: bool, body: f.Block
) -> Middle | None:  # fmt: skip
    """The points of a space between its borders, if they take fewer branches or divisions there; `before` are the
    bindings of outer loops, `body` is that of the function.  If `branches` is not set, this is for places on rings
    only."""
    if not any(isinstance(bind.rhs, f.If) or is_ring(bind.rhs) for bind in binds):
        return None
    whole = f.Block((*before, *binds), ())
    if len(every(whole)) > MOST:
        return None
    work = _Middle(space, whole, branches, body)
    work.block(f.Block(tuple(before), ()))
    work.decided = False
    inside = work.block(f.Block(tuple(binds), ()))
    if not work.decided:
        return None
    same = [(var, work.known[var.name]) for bind in binds for var in bind.vars if var.name in work.known]
    in_order = not all(droppable(bind.rhs) for bind in binds)
    return Middle(inside.binds, tuple(same), work.borders, in_order)


def numbers_for(body: f.Block, wanted: Sequence[str]) -> list[f.Bind]:
    """What computes the whole numbers of these names in a function, in order: n + 1 may be the count of a loop that
    asks for n."""
    defined, todo = whole_numbers(body), list(wanted)
    found: dict[str, f.Bind] = {}
    while todo:
        name = todo.pop()
        if name in defined and name not in found:
            found[name] = defined[name]
            todo += rhs_mentions(defined[name].rhs)
    return [bind for name, bind in defined.items() if name in found]


def numbers_of(body: f.Block, wanted: Sequence[str]) -> Affine:
    """The whole numbers of these names in a function, as sums."""
    affine = Affine(dims_of(body))
    for bind in numbers_for(body, wanted):
        affine.define(bind)
    return affine


@remembered
def whole_numbers(body: f.Block) -> dict[str, f.Bind]:
    """The sums and lengths that a function computes, by name, in order."""
    return {bind.vars[0].name: bind for bind in every(body) if is_whole(bind.rhs) and bind.vars[0].ty == f.I64}


def is_whole(rhs: f.Rhs) -> bool:
    """True for an operation of which sums of whole numbers may be made."""
    return isinstance(rhs, f.Op) and (OPS[rhs.op].quick or rhs.op == "dim")


def is_ring(rhs: f.Rhs) -> bool:
    """True for a place on a ring.  Its length is that of a loop, as `arrays/bounds.py` has found."""
    return isinstance(rhs, f.Op) and rhs.op == "mod" and bool(rhs.attr("ring"))


class _Middle:
    """The code between the borders.  `known` has what variables are there; `decided` says whether that saves much."""

    def __init__(self, space: Space, whole: f.Block, branches: bool, body: f.Block) -> None:
        self.branches = branches
        self.affine = numbers_of(body, [*mentions(whole), *names([count for _, count in space])])
        self.counts = {index.name: self.affine.sum(count) for index, count in space}
        self.borders = {index.name: (0, 0) for index, _ in space}
        self.known: dict[str, f.Atom] = {}
        self.decided = False

    def atom(self, atom: f.Atom) -> f.Atom:
        return self.known.get(atom.name, atom) if isinstance(atom, f.Var) else atom

    def block(self, block: f.Block) -> f.Block:
        made: list[f.Bind] = []
        for bind in block.binds:
            self.bind(bind, made)
        return with_binds(block, made, tuple(map(self.atom, block.results)))

    def bind(self, bind: f.Bind, made: list[f.Bind]) -> None:
        self.affine.define(bind)
        bind = with_rhs(bind, rebuild(bind.rhs, self.atom, unchanged, unchanged))
        match bind.rhs:
            case f.If(f.Const(truth), then, other):
                arm = self.block(then if truth else other)
                made += arm.binds
                self.known.update((var.name, atom) for var, atom in zip(bind.vars, arm.results, strict=True))
                self.decided = True
                return
            case f.Op() as op if is_ring(op) and (place := self.on_ring(op)) is not None:
                made.append(f.Bind(bind.vars, place))
                self.affine.define(made[-1])
                self.decided = True
                return
            case f.Op() as op if len(bind.vars) == 1 and bind.vars[0].ty == f.BOOL:
                truth = self.truth(op) if self.branches else None
                if truth is not None:
                    self.known[bind.vars[0].name] = truth
                    return
            case _:
                pass
        made.append(with_rhs(bind, rebuild(bind.rhs, unchanged, self.block, unchanged)))

    def truth(self, op: f.Op) -> f.Atom | None:
        """What a condition is between the borders."""
        apart = self.affine.difference(op)
        if apart is None:
            return fold(op, {})
        if (total := natural_where(op.op, apart)) is not None:
            return self.natural(total)
        if op.op in ("eq", "ne") and self.is_apart(apart):
            return f.Const(op.op == "ne", f.BOOL)
        return None

    def natural(self, total: Sum) -> f.Const | None:
        """Whether a sum is 0 or greater, if it is an index and a number at a border: it changes its sign there."""
        index = self.only_index(total)
        if index is None:
            return None
        rest = combined(total, {index: total[index]}, -1)
        rises = total[index] == 1  # from this step on it is natural, or from this one on not
        low = self.border(index, combined({}, rest, -1) if rises else combined(rest, {ONE: 1}, 1))
        return None if low is None else f.Const(low is rises, f.BOOL)

    def is_apart(self, total: Sum) -> bool:
        """True if a sum is not 0, as it is an index and a number, and 0 only at a border."""
        index = self.only_index(total)
        if index is None:
            return False
        rest = combined(total, {index: total[index]}, -1)
        step = combined({}, rest, -total[index])
        return self.border(index, combined(step, {ONE: 1}, 1)) is True or self.border(index, step) is False

    def only_index(self, total: Sum) -> str | None:
        """The index of a sum of one index and constants, or the length of its loop."""
        found = [str(term) for term in total if term in self.counts]
        return found[0] if len(found) == 1 and abs(total[found[0]]) == 1 else None

    def border(self, index: str, step: Sum) -> bool | None:
        """Notes that steps before this one are another part than those from it on: true if it is at the low border,
        false if it is at the high one; None if it is at neither."""
        count = self.counts[index]
        low, high = self.borders[index]
        if (many := self.few(step, count)) is not None:
            self.borders[index] = max(low, many), high
            return True
        if (many := self.few(combined(count, step, -1), count)) is not None:
            self.borders[index] = low, max(high, many)
            return False
        return None

    def few(self, steps: Sum, count: Sum) -> int | None:
        """A number of steps, if it is known and so small that most steps of a loop are others."""
        if not set(steps) <= {ONE}:
            return None
        many = max(0, steps.get(ONE, 0))
        return many if (NEAR * many <= count[ONE] if set(count) == {ONE} else many <= FAR) else None

    def on_ring(self, op: f.Op) -> f.Op | None:
        """The sum that a place on a ring is between the borders: it does not wrap there."""
        at, length = map(self.affine.sum, op.args)
        index = self.only_index(at)
        if index is None or at[index] != 1:
            return None
        shift = self.turned(combined(at, {index: 1}, -1), length)
        many = None if shift is None else self.few({ONE: abs(shift)}, length)
        if shift is None or many is None:
            return None
        low, high = self.borders[index]
        self.borders[index] = max(low, -shift), max(high, shift)
        return f.Op("add", (f.Var(index, f.I64), integer(shift)))

    def turned(self, shift: Sum, length: Sum) -> int | None:
        """The steps of a shift on a ring, without whole turns."""
        if set(length) == {ONE}:
            half = length[ONE] // 2
            return (shift.get(ONE, 0) + half) % length[ONE] - half if set(shift) <= {ONE} else None
        rests = [combined(shift, length, -turns) for turns in (0, 1, -1)]
        return next((rest.get(ONE, 0) for rest in rests if set(rest) <= {ONE}), None)
