"""Bounds check elimination: flat -> flat without checks of indices that are in bounds.

    n = dim 0 a                                   n = dim 0 a
    for i < n { x = index a i; ... }       =>     for i < n { x = index unchecked=true a i; ... }

An index is a sum: constants, lengths and indices of loops, each with a factor.  It is in bounds if it is so for the
least and greatest values of the loops' indices, by the lengths that the code tells (`flat/dims.py`).  So are `i + u`
in a window, i < n - m + 1 and u < m, and the index n - 1 - j of a loop in reverse.  A place on a ring, (i + 1) mod n,
is in bounds, too, and needs no division (attr `ring`).
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.conditions import Conditions
from dplc.flat.dims import dims_of
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.walk import with_binds, with_body, with_inner, with_rhs


def bounds(program: f.Program) -> f.Program:
    return replace(program, fns={name: without_checks(fn) for name, fn in program.fns.items()})


def without_checks(fn: f.Fn) -> f.Fn:
    work = _Bounds(Affine(dims_of(fn.body)))
    return with_body(fn, work.block(fn.body))


class _Bounds:
    """One function."""

    def __init__(self, affine: Affine) -> None:
        self.affine = affine
        self.conditions = Conditions(affine)

    def block(self, block: f.Block) -> f.Block:
        binds = [self.bind(bind) for bind in block.binds]
        return with_binds(block, binds)

    def bind(self, bind: f.Bind) -> f.Bind:
        self.conditions.define(bind)
        match bind.rhs:
            case f.Op() as op:
                if OPS[op.op].fails is Fails.BOUNDS and not op.attr("unchecked") and self.inside(op):
                    return f.Bind(bind.vars, replace(op, attrs=(("unchecked", True),)))
                if op.op == "mod" and self.affine.on_ring(op):
                    bind = f.Bind(bind.vars, replace(op, attrs=(("ring", True),)))
                self.affine.define(bind)
                return bind
            case f.For(index, count) | f.Build(index, count):
                self.affine.loop(index, count)
            case f.If() as branch:
                return with_rhs(bind, self.conditions.branches(branch, self.block))
            case _:
                pass
        return with_inner(bind, self.block)

    def inside(self, op: f.Op) -> bool:
        array, *at = op.args
        if op.op == "update":
            at = at[1:]
        doubtful = at[: len(at) - op.attr("sure", 0)]
        return op.op in ("index", "update") and all(self.affine.fits(i, array, k) for k, i in enumerate(doubtful))
