"""Bounds check elimination: flat -> flat without checks of indices that are in bounds.

    n = dim 0 a                                   n = dim 0 a
    for i < n { x = index a i; ... }       =>     for i < n { x = index unchecked=true a i; ... }

An index is a sum: constants, lengths and indices of loops, each with a factor.  It is in bounds if it is so for the
least and greatest values of the loops' indices, by the lengths that the code tells (`flat/dims.py`), also through calls
(`flat/known_sizes.py`).  So are `i + u` in a window, i < n - m + 1 and u < m, and the index n - 1 - j of a loop in
reverse.  What is cut off, max 0 (min (n - 1) (i + u)), is in bounds where there is a step of a loop over n.  A place
on a ring, (i + 1) mod n, is in bounds, too, and needs no division (attr `ring`); where the operand has whole turns
more, as in (i + 1 + n) mod n, these go.  What is in bounds since another read was checked may be so anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from math import prod

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.conditions import Conditions
from dplc.flat.dims import Dims
from dplc.flat.known_sizes import known_sizes
from dplc.flat.ops.row import Dim, Fails
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import supply_for, with_binds, with_body, with_inner, with_rhs
from dplc.passes.arrays.element_ranges import ElementRanges
from dplc.passes.simplify.purity import natural


def bounds(program: f.Program) -> f.Program:
    supply, sizes = cache(lambda: supply_for(program)), known_sizes(program)
    return replace(program, fns={name: without_checks(fn, sizes.dims(fn), supply) for name, fn in program.fns.items()})


def without_checks(fn: f.Fn, dims: Dims, supply: Callable[[], f.Supply]) -> f.Fn:
    """`dims` are the function's dimensions; `supply` is asked for names only if some are needed."""
    work = _Bounds(Affine(dims), supply)
    return with_body(fn, work.block(fn.body))


class _Bounds:
    """One function."""

    def __init__(self, affine: Affine, supply: Callable[[], f.Supply]) -> None:
        self.affine, self.supply = affine, supply
        self.conditions = Conditions(affine)
        self.ranges = ElementRanges(affine)

    def block(self, block: f.Block) -> f.Block:
        binds = [one for bind in block.binds for one in self.binds(bind)]
        return with_binds(block, binds)

    def binds(self, bind: f.Bind) -> tuple[f.Bind, ...]:
        """The binding; the place on a ring without whole turns."""
        op = bind.rhs
        if not (isinstance(op, f.Op) and op.op == "mod" and not self.affine.on_ring(op)):
            made = self.bind(bind)
            self.ranges.define(bind)
            return (made,)
        place = self.affine.turned(op)
        if place is None:
            return (self.bind(bind),)
        index, constant = place
        at = f.Var(self.supply().fresh("add"), f.I64)
        before = f.Bind((at,), f.Op("add", (f.Var(index, f.I64), f.Const(constant, f.I64)), (), op.span))
        return self.bind(before), self.bind(f.Bind(bind.vars, replace(op, args=(at, op.args[1]))))

    def bind(self, bind: f.Bind) -> f.Bind:
        self.conditions.define(bind)
        match bind.rhs:
            case f.Op() as op:
                if OPS[op.op].fails is Fails.BOUNDS and op.attr("unchecked") is not True and self.inside(op):
                    return f.Bind(bind.vars, replace(op, attrs=(("unchecked", True),)))
                if op.op == "reshape" and not op.attr("unchecked") and self.fits(op):
                    return f.Bind(bind.vars, replace(op, attrs=(*op.attrs, ("unchecked", True))))
                if op.op == "mod" and self.affine.on_ring(op):
                    bind = f.Bind(bind.vars, replace(op, attrs=(("ring", True),)))
                self.affine.define(bind)
                return bind
            case f.For() | f.Build() as loop:
                made = self.conditions.steps(loop, lambda: with_inner(bind, self.block))
            case f.If() as branch:
                made = with_rhs(bind, self.conditions.branches(branch, self.block))
            case _:
                made = with_inner(bind, self.block)
        self.affine.define(made)
        return made

    def fits(self, op: f.Op) -> bool:
        """True for a reshape to as many elements as there are."""
        array, *lengths = op.args
        sizes = [self.affine.dims.of(array, k) for k in range(rank_of(array.ty))]
        return all(map(natural, lengths)) and all(map(is_natural, sizes)) and product(sizes) == product(lengths)

    def inside(self, op: f.Op) -> bool:
        array, *at = op.args
        if op.op == "update":
            at = at[1:]
        doubtful = at[: len(at) - op.attr("sure", 0)]
        return op.op in ("index", "update") and all(self.affine.fits(i, array, k) for k, i in enumerate(doubtful))


def is_natural(size: Dim | None) -> bool:
    return isinstance(size, f.Const) and natural(size)


def product(sizes: Iterable[object]) -> int:
    """The product of known sizes."""
    return prod(x.value for x in sizes if isinstance(x, f.Const) and isinstance(x.value, int))
