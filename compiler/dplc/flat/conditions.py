"""What conditions say of whole numbers.

    i < n        c = eq i 0        if c { ... } else { here i - 1 is 0 or greater }

A fact is a sum (`affine.py`) that is 0 or greater.
"""

from __future__ import annotations

from collections.abc import Callable

from dplc.flat import term as f
from dplc.flat.affine import ONE, Affine, Sum, below, combined, natural_where
from dplc.flat.ops.table import OPS
from dplc.flat.walk import remade


class Conditions:
    """The conditions of a function; `defined` has the operation or branch, and which of its results, by variables."""

    def __init__(self, affine: Affine) -> None:
        self.affine = affine
        self.defined: dict[str, tuple[f.Rhs, int]] = {}

    def define(self, bind: f.Bind) -> None:
        """Notes what a boolean is computed of."""
        if isinstance(bind.rhs, f.Op | f.If):
            self.defined |= {var.name: (bind.rhs, k) for k, var in enumerate(bind.vars) if var.ty == f.BOOL}

    def branches(self, branch: f.If, walk: Callable[[f.Block], f.Block]) -> f.If:
        """Walks through the blocks of a branch, each with what holds there.  The same object if they stay the same."""
        affine = self.affine
        before, counts, bounded = len(affine.facts), affine.counts, affine.bounded
        made = []
        for block, truth in ((branch.then, True), (branch.else_, False)):
            affine.counts, affine.bounded = dict(counts), set(bounded)
            self.assume(branch.cond, truth)
            made.append(walk(block))
            affine.counts, affine.bounded = counts, bounded
            del affine.facts[before:]
        return remade(branch, branch.cond, *made)

    def steps(self, loop: f.For | f.Build, walk: Callable[[], f.Bind]) -> f.Bind:
        """Walks through the steps of a loop: where there is one, its count is at least 1."""
        affine, facts = self.affine, self.affine.facts
        before, bounded = len(facts), affine.bounded
        affine.bounded = set(bounded)
        affine.loops(loop)
        if isinstance(loop.count, f.Var):
            facts.append(combined(affine.trip(loop.count), {ONE: 1}, -1))
        made = walk()
        affine.bounded = bounded
        del facts[before:]
        return made

    def assume(self, condition: f.Atom, truth: bool) -> None:
        """Adds what holds where a condition is true or false to the facts of `affine`."""
        rhs, k = self.defined.get(condition.name, (None, 0)) if isinstance(condition, f.Var) else (None, 0)
        match rhs:
            case f.If(inner, then, other):
                if is_never(then.results[k], truth):
                    self.assume(inner, False)
                    self.assume(other.results[k], truth)
                elif is_never(other.results[k], truth):
                    self.assume(inner, True)
                    self.assume(then.results[k], truth)
            case f.Op("not", (inner,)):
                self.assume(inner, not truth)
            case f.Op("and", parts) if truth:
                for part in parts:
                    self.assume(part, True)
            case f.Op("or", parts) if not truth:
                for part in parts:
                    self.assume(part, False)
            case f.Op() as op:
                self.compare(op, truth)
            case _:
                pass

    def decided(self, op: f.Op) -> bool | None:
        """The value of a comparison of whole numbers, if it is known."""
        difference = self.difference(op)
        if difference is None:
            return None
        if (total := natural_where(op.op, difference)) is not None:
            return self.is_natural(total)
        match op.op:
            case "eq":
                return self.is_zero(difference)
            case "ne":
                return negated(self.is_zero(difference))
            case _:
                return None

    def holds(self, condition: f.Atom, truth: bool) -> bool:
        """True if it is known that a condition is true, or that it is false."""
        rhs, k = self.defined.get(condition.name, (None, 0)) if isinstance(condition, f.Var) else (None, 0)
        match rhs:
            case f.If(inner, then, other) if truth and is_never(other.results[k], True):
                return self.holds(inner, True) and self.holds(then.results[k], True)
            case f.Op("not", (inner,)):
                return self.holds(inner, not truth)
            case f.Op("and" | "or" as name, parts) if truth is (name == "and"):
                return all(self.holds(part, truth) for part in parts)
            case f.Op() as op:
                return self.decided(op) is truth
            case _:
                return False

    def equality(self, op: f.Op) -> tuple[str, int] | None:
        """For a comparison of whole numbers that only one value of an index decides: `eq` or `ne`, and what is added to
        the right operand.  i > 0 is i <> 0."""
        difference, sign = self.difference(op), OPS[op.op].sign
        if difference is None or sign is None:
            return None
        factor, less = sign
        apart = combined({ONE: -less}, difference, factor)
        if self.affine.is_natural(combined({}, apart, -1)):  # true if this is 0
            return "eq", factor * less
        if self.affine.is_natural(combined({ONE: 1}, apart, 1)):  # false if this is -1
            return "ne", factor * (less - 1)
        return None

    def is_natural(self, total: Sum) -> bool | None:
        """Whether a sum is 0 or greater, if it is known."""
        if self.affine.is_natural(total):
            return True
        return False if self.affine.is_natural(below(total)) else None

    def is_zero(self, total: Sum) -> bool | None:
        """Whether a sum is 0; None if that is not known."""
        known = {self.is_natural(total), self.is_natural(combined({}, total, -1))}
        return False if False in known else None if None in known else True

    def compare(self, op: f.Op, truth: bool) -> None:
        """Adds what a comparison of whole numbers says if it holds, or if it does not."""
        difference = self.difference(op)
        if difference is None:
            return
        facts = self.affine.facts
        if (total := natural_where(op.op, difference)) is not None:
            facts.append(total if truth else below(total))
        elif op.op in ("eq", "ne"):
            for apart in (difference, combined({}, difference, -1)):
                if truth is (op.op == "eq"):
                    facts.append(apart)
                elif self.affine.is_natural(apart):
                    facts.append(combined({ONE: -1}, apart, 1))

    def difference(self, op: f.Op) -> Sum | None:
        """The first less the second operand, of an operation on two whole numbers that are their sums."""
        difference = self.affine.difference(op)
        exact = difference is not None and all(self.affine.is_exact(self.affine.sum(a)) for a in op.args)
        return difference if exact else None


def negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def is_never(result: f.Atom, value: bool) -> bool:
    return isinstance(result, f.Const) and result.value is not value
