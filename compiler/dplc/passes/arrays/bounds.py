"""Bounds check elimination: flat -> flat without checks of indices that are in bounds.

    n = dim 0 a                                   n = dim 0 a
    for i < n { x = index a i; ... }       =>     for i < n { x = index unchecked=true a i; ... }

An index is a sum: constants, lengths and indices of loops, each with a factor.  It is in bounds if it is so for the
least and greatest values of the loops' indices, by the lengths that the code tells (`flat/dims.py`).  So are `i + u`
in a window, i < n - m + 1 and u < m, and the index n - 1 - j of a loop in reverse.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import LARGEST, ONE, Sum, combined
from dplc.flat.dims import Dims
from dplc.flat.ops.row import Dim, Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import with_blocks


def bounds(program: f.Program) -> f.Program:
    return replace(program, fns={name: without_checks(fn) for name, fn in program.fns.items()})


def without_checks(fn: f.Fn) -> f.Fn:
    work = _Bounds(Dims(fn.body))
    body = work.block(fn.body)
    return fn if body is fn.body else replace(fn, body=body)


class _Bounds:
    """One function.  `sums` has the values of variables as sums, `counts` the lengths of the loops around, by their
    indices."""

    def __init__(self, dims: Dims) -> None:
        self.dims = dims
        self.sums: dict[str, Sum] = {}
        self.counts: dict[object, Sum] = {}

    def block(self, block: f.Block) -> f.Block:
        binds = [self.bind(bind) for bind in block.binds]
        same = all(new is old for new, old in zip(binds, block.binds, strict=True))
        return block if same else f.Block(tuple(binds), block.results)

    def bind(self, bind: f.Bind) -> f.Bind:
        match bind.rhs:
            case f.Op() as op:
                if OPS[op.op].fails is Fails.BOUNDS and not op.attr("unchecked") and self.inside(op):
                    return f.Bind(bind.vars, replace(op, attrs=(("unchecked", True),)))
                if len(bind.vars) == 1 and (total := self.total(op)) is not None:
                    self.sums[bind.vars[0].name] = total
                return bind
            case f.For(index, count) | f.Build(index, count):
                self.counts[index.name] = self.sum(count)
            case _:
                pass
        rhs = with_blocks(bind.rhs, self.block)
        return bind if rhs is bind.rhs else f.Bind(bind.vars, rhs)

    def total(self, op: f.Op) -> Sum | None:
        """The value of an operation as a sum."""
        match op.op, op.args:
            case "dim", (array,):
                return self.length(self.dims.of(array, op.attr("k")))
            case "add" | "sub" as name, (a, b) if a.ty == f.I64:
                left, right = self.sum(a), self.sum(b)
                made = combined(left, right, 1 if name == "add" else -1)
                return made if all(abs(n) < LARGEST for n in made.values()) and self.is_small(right) else None
            case _:
                return None

    def is_small(self, total: Sum) -> bool:
        """True if a sum has only constants, lengths and indices, which are far from the greatest integer."""
        return all(term == ONE or term in self.counts or isinstance(term, tuple) for term in total)

    def sum(self, atom: f.Atom) -> Sum:
        if isinstance(atom, f.Const):
            return {ONE: atom.value} if isinstance(atom.value, int) else {}
        return self.sums.get(atom.name, {atom.name: 1})

    def length(self, dim: Dim | None) -> Sum | None:
        match dim:
            case None:
                return None
            case (array, k):
                return {(array.name, k): 1}
            case atom:
                return self.sum(atom)

    def inside(self, op: f.Op) -> bool:
        array, *at = op.args
        if op.op == "update":
            at = at[1:]
        doubtful = at[: len(at) - op.attr("sure", 0)]
        return op.op in ("index", "update") and all(self.fits(i, array, k) for k, i in enumerate(doubtful))

    def fits(self, index: f.Atom, array: f.Atom, k: int) -> bool:
        """True if 0 <= index < dimension k of the array."""
        length, at = self.length(self.dims.of(array, k)), self.sum(index)
        if length is None or not self.is_natural(at):
            return False
        return self.is_natural(combined(length, combined(at, {ONE: 1}, 1), -1))

    def is_natural(self, total: Sum) -> bool:
        """True if a sum is 0 or greater: indices of loops are replaced by the values that make it least."""
        while loops := [term for term in total if term in self.counts]:
            for index in loops:
                factor = total[index]
                total = combined(total, {index: 1}, -factor)
                if factor < 0:  # the last step
                    total = combined(total, combined(self.counts[index], {ONE: 1}, -1), factor)
        return all(factor >= 0 and (term == ONE or isinstance(term, tuple)) for term, factor in total.items())
