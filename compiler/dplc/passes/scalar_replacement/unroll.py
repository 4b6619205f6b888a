"""Loop unrolling: flat -> flat where comprehensions and loops of few steps, known in number, are straight code.

    y = build k < 2 { t = mul k 3; yield t }      =>      t0 = mul 0 3;  t1 = mul 1 3;  y = array t0 t1

A loop is unrolled if its body reads or updates arrays: that is then done at constants.  A comprehension is not if an
element of it is searched that is much work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims
from dplc.flat.ops.arrays import RAGGED
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import every, names, with_binds, with_blocks, with_rhs
from dplc.passes.scalar_replacement.few_elements import shape_of
from dplc.passes.simplify.row_shapes import one_shape

STEPS = 8  # of a loop that is unrolled
LARGEST = 96  # bindings that one loop becomes
MOST = 512  # bindings that all loops of a function become


def unrolled(fn: f.Fn, supply: f.Supply, dims: Dims, is_main: bool, aside: Callable[[f.Block], bool]) -> f.Fn:
    """The function; the same object if it has no such loops.  Blocks `aside` keep them, but not inside of
    comprehensions."""
    work = _Unroller(supply, dims, aside, searched(fn.body))
    body = work.block(fn.body, inner=not is_main and not aside(fn.body))
    return replace(fn, body=body) if work.made else fn


def searched(body: f.Block) -> set[str]:
    """The arrays in which an element is searched."""
    found = [bind.rhs for bind in every(body) if isinstance(bind.rhs, f.Op) and OPS[bind.rhs.op].finds]
    return {name for op in found for name in names(op.args)}


class _Unroller:
    """One function; `made` counts the bindings that loops became."""

    def __init__(
        self, supply: f.Supply, dims: Dims, aside: Callable[[f.Block], bool], searched: set[str]
    ) -> None:  # fmt: skip
        self.supply, self.dims = supply, dims
        self.aside, self.searched = aside, searched
        self.made = 0

    def block(self, block: f.Block, inner: bool) -> f.Block:
        binds: list[f.Bind] = []
        for bind in block.binds:
            deeper = inner or self.opens(bind.rhs)
            rhs = with_blocks(bind.rhs, lambda b, deeper=deeper: self.block(b, deeper))
            bind = with_rhs(bind, rhs)
            if inner and isinstance(rhs, f.Build | f.For) and self.fits(rhs) and not self.is_searched(bind):
                copies = [*self.build(bind, rhs)] if isinstance(rhs, f.Build) else [*self.loop(bind, rhs)]
                self.made += len(copies)
                binds += copies
            else:
                binds.append(bind)
        return with_binds(block, binds)

    def opens(self, rhs: f.Rhs) -> bool:
        """True if what is inside is done often."""
        return isinstance(rhs, f.Build) or (isinstance(rhs, f.For | f.While) and not self.aside(rhs.body))

    def fits(self, loop: f.Build | f.For) -> bool:
        """True if a loop has few steps, and little becomes of it."""
        if not isinstance(loop.count, f.Const) or not isinstance(loop.count.value, int):
            return False
        steps = loop.count.value
        if not 0 < steps <= STEPS:
            return False
        inside = list(every(loop.body))
        if steps * len(inside) > LARGEST or self.made + steps * len(inside) > MOST:
            return False
        if any(isinstance(b.rhs, f.For | f.While | f.Build) for b in inside):
            return False  # the loops inside are worth more than what is known of this one
        if isinstance(loop, f.For):
            return not loop.collect and any(isinstance(b.rhs, f.Op) and b.rhs.op in ("index", "update") for b in inside)
        if not one_shape(loop, self.dims) and any(isinstance(b.rhs, f.Ad | f.Call) for b in inside):
            return False  # the loop may tell the sizes of its rows, which what it calls does not
        return all(isinstance(elem_of(atom.ty), f.Num) for atom in loop.body.results)

    def is_searched(self, bind: f.Bind) -> bool:
        """True for a comprehension whose elements are much work, and in which one is searched: the derivative goes
        through that one (`chosen_elements`)."""
        if self.searched.isdisjoint([var.name for var in bind.vars]):
            return False
        inside = [one.rhs for one in every(f.Block((bind,), ()))]
        products = [op for op in inside if isinstance(op, f.Op) and op.op in ("dot", "sum")]
        return any(shape_of(self.dims, op.args[0]) is None for op in products)

    def build(self, bind: f.Bind, build: f.Build) -> Iterator[f.Bind]:
        assert isinstance(build.count, f.Const) and isinstance(build.count.value, int)
        results: list[tuple[f.Atom, ...]] = []
        alike = one_shape(build, self.dims)
        for i in range(build.count.value):
            copy = Copier(self.supply, {build.index.name: f.Const(i, f.I64)}).block(build.body)
            yield from copy.binds
            if results and not alike:
                yield from self.compared(results[0], copy.results, build.span)
            results.append(copy.results)
        for k, var in enumerate(bind.vars):
            yield f.Bind((var,), f.Op("array", tuple([row[k] for row in results]), (), build.span))

    def compared(self, first: tuple[f.Atom, ...], later: tuple[f.Atom, ...], span: f.Span) -> tuple[f.Bind, ...]:
        """The checks that rows have the sizes of the first ones: nothing may need the array."""
        b = Builder(self.supply)
        for one, row in zip(first, later, strict=True):
            for k in range(rank_of(row.ty)):
                b.effect("check_lengths", (b.op("dim", (one,), k=k), b.op("dim", (row,), k=k)), span, what=RAGGED)
        return block_of(b.binds, ()).binds

    def loop(self, bind: f.Bind, loop: f.For) -> Iterator[f.Bind]:
        assert isinstance(loop.count, f.Const) and isinstance(loop.count.value, int)
        state = loop.inits
        for i in range(loop.count.value):
            given = {s.name: a for s, a in zip(loop.state, state, strict=True)} | {loop.index.name: f.Const(i, f.I64)}
            copy = Copier(self.supply, given).block(loop.body)
            yield from copy.binds
            state = copy.results
        tup = f.Var(self.supply.fresh("state"), f.Tup(tuple([s.ty for s in loop.state])))
        yield f.Bind((tup,), f.TupMake(state))
        for k, var in enumerate(bind.vars):
            yield f.Bind((var,), f.TupGet(tup, k))
