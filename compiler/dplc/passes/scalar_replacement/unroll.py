"""Loop unrolling: flat -> flat where comprehensions and loops of few steps, known in number, are straight code.

    y = build k < 2 { t = mul k 3; yield t }      =>      t0 = mul 0 3;  t1 = mul 1 3;  y = array t0 t1

A loop is unrolled if its body reads or updates arrays: that is then done at constants.  A comprehension is not if an
element of it is searched that is much work.

    for k < 3 { for q < 2 - k { a[k + 1 + q, k] ... } }     =>      a[1, 0] ...;  a[2, 0] ...;  a[2, 1] ...

A nest, such as that of an elimination, is unrolled if straight code becomes of all of it, and that is little once its
indices are folded.  This is tried, as the code before folding tells too little (LLVM's analysis of the cost of full
unrolling simulates it, too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of
from dplc.flat.copy import Copier
from dplc.flat.dims import Dims
from dplc.flat.ops.arrays import RAGGED
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import blocks, bound_inside, every, mentioned, names, with_binds, with_blocks, with_body, with_rhs
from dplc.passes.scalar_replacement.few_elements import shape_of
from dplc.passes.simplify.row_shapes import one_shape
from dplc.passes.simplify.simplify import simplified

STEPS = 8  # of a loop that is unrolled
LARGEST = 96  # bindings that one loop becomes
MOST = 512  # bindings that all loops of a function become
LOOPS = (f.For, f.While, f.Build)
TRIED = 1024  # bindings of a nest that is tried, before they are folded
OF_NEST = 48  # bindings that a nest becomes: their second derivatives are some forty times as many


def unrolled(
    fn: f.Fn, supply: f.Supply, dims: Dims, is_main: bool, aside: Callable[[f.Block], bool], program: f.Program
) -> f.Fn:
    """The function; the same object if it has no such loops.  Blocks `aside` keep them, but not inside of
    comprehensions."""
    work = _Unroller(supply, dims, aside, searched(fn.body), program)
    body = work.block(fn.body, inner=not is_main and not aside(fn.body))
    return replace(fn, body=body) if work.made else fn


def searched(body: f.Block) -> set[str]:
    """The arrays in which an element is searched."""
    found = [bind.rhs for bind in every(body) if isinstance(bind.rhs, f.Op) and OPS[bind.rhs.op].finds]
    return {name for op in found for name in names(op.args)}


class _Unroller:
    """One function; `made` counts the bindings that loops became."""

    def __init__(
        self, supply: f.Supply, dims: Dims, aside: Callable[[f.Block], bool], searched: set[str], program: f.Program,
        most: int = LARGEST, nests: bool = False,
    ) -> None:  # fmt: skip
        """`most` bindings, at most, one loop becomes; `nests`: also one with loops inside of it."""
        self.supply, self.dims = supply, dims
        self.aside, self.searched, self.program = aside, searched, program
        self.most, self.nests = most, nests
        self.made = 0
        self.left = set[str]()  # the indices of nests that were tried

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
            elif inner and not self.nests and isinstance(rhs, f.For) and (straight := self.straight(bind, rhs)):
                binds += [*straight.binds, *joined(bind.vars, straight.results, self.supply)]
                self.made += len(straight.binds)
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
        if not (0 < steps <= STEPS or (self.nests and steps <= 0 and isinstance(loop, f.For))):
            return False
        inside = list(every(loop.body))
        if steps * len(inside) > self.most or self.made + steps * len(inside) > max(MOST, self.most):
            return False
        if not self.nests and any(isinstance(b.rhs, LOOPS) for b in inside):
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
        yield from joined(bind.vars, state, self.supply)

    def straight(self, bind: f.Bind, nest: f.For) -> f.Block | None:
        """The straight code that becomes of a nest of loops; None if loops are left, or if it is much."""
        loops = [one.rhs for one in every(nest.body) if isinstance(one.rhs, LOOPS)]
        if not loops or not isinstance(nest.count, f.Const) or nest.collect:
            return None
        own = {var.name for var in bound_inside(nest)}
        if any(isinstance(loop, f.While) or not is_told(loop.count, own) for loop in loops):
            return None
        if not own.isdisjoint(self.left) or least_steps(nest) > OF_NEST:
            return None  # it is as much as the nest inside of it, and as its steps, at least
        self.left.add(nest.index.name)
        body = f.Block((bind,), bind.vars)
        fn = f.Fn("nest", tuple(mentioned(body).values()), tuple([var.ty for var in bind.vars]), body)
        while has_loops(fn.body):
            work = _Unroller(self.supply, self.dims, self.aside, self.searched, self.program, TRIED, nests=True)
            body = work.block(fn.body, inner=True)
            if not work.made:
                return None
            fn = simplified(with_body(fn, body), self.supply, self.program)
        size = sum(not goes(bind.rhs) for bind in every(fn.body))
        return fn.body if size <= OF_NEST and self.made + size <= MOST else None


def is_told(count: f.Atom, own: set[str]) -> bool:
    """True if a number of steps is small, or may follow from the index of a loop whose body binds `own`."""
    return count.name in own if isinstance(count, f.Var) else isinstance(count.value, int) and count.value <= STEPS


def least_steps(rhs: f.Rhs) -> int:
    """The innermost steps of a nest of loops, counting those of known numbers."""
    inside = sum(least_steps(bind.rhs) for block in blocks(rhs) for bind in block.binds)
    match rhs:
        case f.For(count=f.Const(int(steps))) | f.Build(count=f.Const(int(steps))):
            return max(inside, 1) * steps
        case f.For() | f.Build():
            return max(inside, 1)
        case _:
            return inside


def goes(rhs: f.Rhs) -> bool:
    """True for what is not there where arrays are numbers."""
    match rhs:
        case f.Op("index", (_, *places)) | f.Op("update", (_, _, *places)):
            return all(isinstance(place, f.Const) for place in places)
        case _:
            return isinstance(rhs, f.Op) and rhs.op in ("array", "reshape")


def has_loops(block: f.Block) -> bool:
    return any(isinstance(bind.rhs, LOOPS) for bind in every(block))


def joined(made: Sequence[f.Var], values: tuple[f.Atom, ...], supply: f.Supply) -> Iterator[f.Bind]:
    """Gives these variables their values."""
    tup = f.Var(supply.fresh("state"), f.Tup(tuple([var.ty for var in made])))
    yield f.Bind((tup,), f.TupMake(values))
    for k, var in enumerate(made):
        yield f.Bind((var,), f.TupGet(tup, k))
