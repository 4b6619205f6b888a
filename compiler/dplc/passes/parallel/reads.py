"""Reads are checked once, before a Par, if nothing else in it can fail.

    par i < n {                                  bad = n + 1 > dim a
      j = add i 1                                if bad {
      x = index a j                   =>           par i < n { j = add i 1; index a j } }      fails as the Par would
      ... }                                      par i < n { j = add i 1; x = index unchecked a j; ... }

Indices must be sums of the Par's indices, those of Pars in it, and numbers from outside; so the least and the greatest
one are known.  Points without checks are vectorised and joined.  If a check fails, the reads alone are done in order,
with checks.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import LARGEST, ONE, Affine, Sum, combined
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims
from dplc.flat.walk import every, rhs_mentions, with_blocks
from dplc.passes.simplify.purity import droppable


def check_reads_before(fn: f.Fn, supply: f.Supply) -> f.Fn:
    """The function, in which the reads of its outermost Pars are checked before them, where this can be done."""
    if not any(is_checked(bind.rhs) for bind in every(fn.body)):
        return fn
    body = _Reads(fn, supply).block(fn.body)
    return fn if body is fn.body else replace(fn, body=body)


def is_checked(rhs: f.Rhs) -> bool:
    return isinstance(rhs, f.Op) and rhs.op == "index" and not rhs.attr("unchecked")


class _Reads:
    def __init__(self, fn: f.Fn, supply: f.Supply) -> None:
        self.supply = supply
        self.affine = Affine(Dims(fn.body))

    def block(self, block: f.Block) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            self.affine.define(bind)
            found = self.checked_before(bind) if isinstance(bind.rhs, f.Par) else None
            if found is None:
                inner = with_blocks(bind.rhs, self.block)
                found = [bind if inner is bind.rhs else f.Bind(bind.vars, inner)]
            binds += found
        same = len(binds) == len(block.binds) and all(a is b for a, b in zip(binds, block.binds, strict=True))
        return block if same else f.Block(tuple(binds), block.results)

    def checked_before(self, bind: f.Bind) -> list[f.Bind] | None:
        """A Par after the checks of its reads; None if it has none, or they cannot be done before it."""
        par = bind.rhs
        assert isinstance(par, f.Par)
        if par.ordered or not any(is_checked(inner.rhs) for inner in every(par.body)):
            return None
        counts = dict(self.affine.counts)
        inside = {index.name for index, _ in par.space}
        inside.update([var.name for inner in every(par.body) for var in inner.vars])
        ranges = _Ranges(self.affine, inside)
        fine = ranges.can_be_checked(par)
        self.affine.counts = counts
        if not fine:
            return None
        b = Builder(self.supply)
        bad = ranges.failing(b)
        if bad is not None:
            reads = f.Bind((), f.If(bad, f.Block((self.alone(par),), ()), f.Block((), ())))
            b.binds.append(reads)
        return [*block_of(b.binds, ()).binds, f.Bind(bind.vars, without_checks(par))]

    def alone(self, par: f.Par) -> f.Bind:
        """The reads of a Par that are checked, in order, and what they need."""
        copied = Copier(self.supply, {}).rhs(replace(par, body=needed(par.body), outs=(), ordered=True))
        return f.Bind((), copied)


class _Ranges:
    """The least and greatest indices of a Par's reads.  `inside` are the variables of its points."""

    def __init__(self, affine: Affine, inside: set[str]) -> None:
        self.affine = affine
        self.inside = inside
        self.low: list[Sum] = []  # sums that must be 0 or greater
        self.rows: set[str] = set()  # arrays of the points that are parts of others

    def can_be_checked(self, par: f.Par) -> bool:
        for index, count in par.space:
            self.affine.loop(index, count)
        return all(self.fits(bind) for bind in par.body.binds)

    def fits(self, bind: f.Bind) -> bool:
        """True if a binding cannot fail after the checks."""
        match bind.rhs:
            case f.Op("index") as op if is_checked(op) or isinstance(bind.vars[0].ty, f.Arr):
                self.rows.add(bind.vars[0].name)
                return not is_checked(op) or self.read(op)
            case f.Op() as op:
                self.affine.define(bind)
                return droppable(op)
            case f.Par() as par if not par.ordered:
                counts = all(isinstance(n, f.Const) or n.name not in self.inside for _, n in par.space)
                return counts and self.can_be_checked(par)
            case rhs:
                return droppable(rhs)

    def read(self, op: f.Op) -> bool:
        array, *indices = op.args
        if not isinstance(array, f.Var) or (array.name in self.inside and array.name not in self.rows):
            return False
        for k, index in enumerate(indices[: len(indices) - op.attr("sure", 0)]):
            length = self.affine.length(self.affine.dims.of(array, k))
            at = self.affine.sum(index)
            if length is None:
                return False
            for total in (at, combined(length, combined(at, {ONE: 1}, 1), -1)):
                least = self.affine.least(total)
                if any(self.name(term) in self.inside for term in least):
                    return False
                if not self.affine.is_natural(least):
                    self.low.append(least)
        return True

    @staticmethod
    def name(term: object) -> object:
        return term[0] if isinstance(term, tuple) else term

    # ---- the checks

    def failing(self, b: Builder) -> f.Atom | None:
        """Whether a read may fail, before the Par."""
        found: list[f.Atom] = []
        seen: list[Sum] = []
        others: set[str] = set()
        for total in self.low:
            if total in seen:
                continue
            seen.append(total)
            others.update([term for term in total if isinstance(term, str)])
            found.append(b.op("lt", (self.written(b, total), integer(0))))
        for name in sorted(others):  # so that sums cannot overflow
            number = f.Var(name, f.I64)
            found += [b.op("gt", (number, integer(LARGEST))), b.op("lt", (number, integer(-LARGEST)))]
        if not found:
            return None
        bad = found[0]
        for other in found[1:]:
            bad = b.op("or", (bad, other))
        return bad

    def written(self, b: Builder, total: Sum) -> f.Atom:
        """A sum as code."""
        made: f.Atom = integer(total.get(ONE, 0))
        for term, factor in sorted(total.items(), key=lambda item: -item[1]):
            if term == ONE:
                continue
            value: f.Atom = f.Var(str(term), f.I64)
            if isinstance(term, tuple):
                value = b.op("dim", (self.affine.arrays[term[0]],), k=term[1])
            if abs(factor) != 1:
                value = b.op("mul", (integer(abs(factor)), value))
            first = made == integer(0) and factor > 0
            made = value if first else b.op("add" if factor > 0 else "sub", (made, value))
        return made


def needed(block: f.Block) -> f.Block:
    """The reads of a block that are checked, with what they need."""
    wanted: set[str] = set()
    kept: list[f.Bind] = []
    for bind in reversed(block.binds):
        match bind.rhs:
            case f.Par() as par if not wanted.intersection([var.name for var in bind.vars]):
                if not any(is_checked(inner.rhs) for inner in every(par.body)):
                    continue
                bind = f.Bind((), replace(par, body=needed(par.body), outs=(), ordered=True))
            case rhs if not is_checked(rhs) and not wanted.intersection([var.name for var in bind.vars]):
                continue
            case _:
                pass
        wanted.update(rhs_mentions(bind.rhs))
        kept.append(bind)
    return f.Block(tuple(reversed(kept)), ())


def without_checks(par: f.Par) -> f.Par:
    def unchecked(bind: f.Bind) -> f.Bind:
        match bind.rhs:
            case f.Op() as op if is_checked(op):
                return f.Bind(bind.vars, replace(op, attrs=(("unchecked", True),)))
            case f.Par() as inner:
                return f.Bind(bind.vars, without_checks(inner))
            case _:
                return bind

    return replace(par, body=f.Block(tuple(map(unchecked, par.body.binds)), par.body.results))
