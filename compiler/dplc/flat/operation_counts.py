"""flat -> flat that counts its operations, for `dpl bench --cost`.

    y = mul x x                  tick 1;  y = mul x x
    z = sum a              =>    n = dim 0 a;  tick n;  z = sum a
    s' = for i < k ...           s' = for i < k ... { tick 2; ... }

Any operation on a number counts as one, and so do reading or writing an element, making a cell, choosing a branch, and
a call.  An operation on arrays counts one for each element, a matrix product two for each pair of factors, and a
factorization the number in Golub and Van Loan's book.  Operations without run-time cost (views, tuples, lengths) count
as zero.

The program reads its counters by calling `READ`, a C function that does not exist.  This pass turns these calls into
`tally`.  The bytes it allocates, copies of shared arrays included, are counted by the machine
(`machine/emit/module/emitter.py`).
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.ops.row import Measure
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import supply_for, with_blocks

READ = "dpl_tally"


def tally(program: f.Program) -> f.Program:
    """A program that adds the operations of each block to a counter before it does them."""
    counter = _Counter(supply_for(program))
    fns = {name: replace(fn, body=counter.block(fn.body)) for name, fn in program.fns.items()}
    return replace(program, fns=fns)


class _Counter:
    def __init__(self, supply: f.Supply) -> None:
        self.supply = supply

    def block(self, block: f.Block) -> f.Block:
        """Operations that certainly run are counted once, at the start or after the last reading of counters.  The
        others are counted where they run."""
        fixed, start, b = 0, 0, Builder(self.supply)
        for bind in block.binds:
            match bind.rhs:
                case f.Op("extern", args, attrs) if ("symbol", READ) in attrs:
                    b.binds.insert(start, f.Bind((), f.Op("tick", (integer(fixed),))))
                    b.binds.append(f.Bind(bind.vars, f.Op("tally", args)))
                    fixed, start = 0, len(b.binds)
                    continue
                case f.Op() as op:
                    cost = OPS[op.op].cost(_Measure(b), op)
                    fixed += cost if isinstance(cost, int) else tick(b, cost)
                case f.Call() | f.If() | f.Switch():
                    fixed += 1
                case f.ConMake(_, _, arg):
                    fixed += arg is not None
                case f.Map(_, inputs, body):
                    whole = max(inputs, key=lambda a: rank_of(a.ty))
                    measure = _Measure(b)
                    tick(b, measure.op("mul", measure.elements(whole), len(body.binds)))
                case _:
                    pass
            rhs = bind.rhs if isinstance(bind.rhs, f.Map) else with_blocks(bind.rhs, self.block)
            b.binds.append(f.Bind(bind.vars, self.stores(rhs)))
        if fixed:
            b.binds.insert(start, f.Bind((), f.Op("tick", (integer(fixed),))))
        return block_of(b.binds, block.results)

    def stores(self, rhs: f.Rhs) -> f.Rhs:
        """A loop or comprehension with a count of one for each element that it stores."""
        count = len(rhs.body.results) if isinstance(rhs, f.Build) else 0
        if isinstance(rhs, f.For | f.While):
            count = rhs.collect
        if not count or not isinstance(rhs, f.Build | f.For | f.While):
            return rhs
        ticking = f.Bind((), f.Op("tick", (integer(count),)))
        return replace(rhs, body=f.Block((ticking, *rhs.body.binds), rhs.body.results))


class _Measure(Measure):
    """Emits the code of costs into a builder."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def elements(self, array: f.Atom) -> f.Atom:
        dims = [self.dim(array, k) for k in range(rank_of(array.ty))]
        return self.product(*dims) if dims else integer(1)

    def dim(self, array: f.Atom, k: int) -> f.Atom:
        return self.b.op("dim", (array,), k=k)

    def made(self, array: f.Atom, dims: tuple[f.Atom, ...]) -> f.Atom:
        if isinstance(array, f.Const):
            return self.product(*dims)
        return self.b.op("select", (self.b.op("is_null", (array,)), self.product(*dims), integer(0)))

    def op(self, name: str, left: f.Atom | int, right: f.Atom | int) -> f.Atom:
        return self.b.op(name, (_atom(left), _atom(right)))

    def product(self, *factors: f.Atom | int) -> f.Atom:
        first, *rest = map(_atom, factors)
        for factor in rest:
            first = self.op("mul", first, factor)
        return first


def _atom(number: f.Atom | int) -> f.Atom:
    return integer(number) if isinstance(number, int) else number


def tick(b: Builder, count: f.Atom) -> int:
    b.binds.append(f.Bind((), f.Op("tick", (count,))))
    return 0
