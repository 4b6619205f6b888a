"""flat -> flat that counts what it does, for `dpl bench --cost`.

    y = mul x x                  tick 1;  y = mul x x
    z = sum a              =>    n = dim 0 a;  tick n;  z = sum a
    s' = for i < k ...           s' = for i < k ... { tick 2; ... }

An operation on a number counts as one, whichever it is, and so does reading or writing an element, making a cell,
choosing a branch, and calling; an operation on arrays counts as many as it has elements to go through, a matrix
product two for each pair it multiplies, a factorization what Golub and Van Loan's book says.  What costs nothing when
it runs (views, tuples, lengths) counts as nothing.

The program reads its counters by a C function that is not there, `READ`, whose calls this pass turns into `tally`.
The bytes it allocates, copies of shared arrays included, are counted by the machine (`machine/emit/emitter.py`).
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, integer
from dplc.flat.ops.table import ELEMENTWISE
from dplc.flat.types import rank_of
from dplc.flat.walk import supply_for, with_blocks

READ = "dpl_tally"
FREE = frozenset({"dim", "is_null", "stop_grad", "reshape", "slice", "same_shape", "check_equal", "bitcast"})
WHOLE = frozenset({"copy", "transpose", "sum", "sum_to"})  # they go through all of their operand
# Of m rows and n columns, in thirds of m n n and of n n n.
FACTORIZATIONS = {
    "lapack_lu": (0, 2), "lapack_cholesky": (0, 1), "lapack_qr": (12, -4), "lapack_eigh": (0, 27),
    "lapack_svd": (42, 24),
}  # fmt: skip


def tally(program: f.Program) -> f.Program:
    counter = _Counter(supply_for(program))
    fns = {name: replace(fn, body=counter.block(fn.body)) for name, fn in program.fns.items()}
    return replace(program, fns=fns)


class _Counter:
    def __init__(self, supply: f.Supply) -> None:
        self.supply = supply

    def block(self, block: f.Block) -> f.Block:
        """What surely runs is counted once, at the beginning or where counters were read; the rest where it happens."""
        fixed, start, b = 0, 0, Builder(self.supply)
        for bind in block.binds:
            match bind.rhs:
                case f.Op("extern", args, attrs) if ("symbol", READ) in attrs:
                    b.binds.insert(start, f.Bind((), f.Op("tick", (integer(fixed),))))
                    b.binds.append(f.Bind(bind.vars, f.Op("tally", args)))
                    fixed, start = 0, len(b.binds)
                    continue
                case f.Op() as op:
                    fixed += self.op(b, op)
                case f.Call() | f.If() | f.Switch():
                    fixed += 1
                case f.ConMake(_, _, arg):
                    fixed += arg is not None
                case f.Map(_, inputs, body):
                    whole = max(inputs, key=lambda a: rank_of(a.ty))
                    tick(b, b.op("mul", (elements(b, whole), integer(len(body.binds)))))
                case _:
                    pass
            rhs = bind.rhs if isinstance(bind.rhs, f.Map) else with_blocks(bind.rhs, self.block)
            b.binds.append(f.Bind(bind.vars, self.stores(rhs)))
        if fixed:
            b.binds.insert(start, f.Bind((), f.Op("tick", (integer(fixed),))))
        return f.Block(tuple(b.binds), block.results)

    def stores(self, rhs: f.Rhs) -> f.Rhs:
        """Elements that a loop or comprehension keeps are written, one each."""
        count = len(rhs.body.results) if isinstance(rhs, f.Build) else 0
        if isinstance(rhs, f.For | f.While):
            count = rhs.collect
        if not count or not isinstance(rhs, f.Build | f.For | f.While):
            return rhs
        ticking = f.Bind((), f.Op("tick", (integer(count),)))
        return replace(rhs, body=f.Block((ticking, *rhs.body.binds), rhs.body.results))

    def op(self, b: Builder, op: f.Op) -> int:
        """What an operation costs, if that is known now; else 0, and `b` gets the code that counts."""
        args = op.args
        match op.op:
            case name if name in FREE:
                return 0
            case name if name in ELEMENTWISE:
                whole = max(args, key=lambda a: rank_of(a.ty))
                return 1 if not rank_of(whole.ty) else tick(b, elements(b, whole))
            case name if name in WHOLE:
                return 1 if not rank_of(args[0].ty) else tick(b, elements(b, args[0]))
            case "dot":
                return tick(b, b.op("mul", (integer(2), elements(b, args[0]))))
            case "matmul" | "matmul_acc":
                rows, inner = (b.op("dim", (args[-2],), k=k ^ bool(op.attr("ta"))) for k in (0, 1))
                columns = b.op("dim", (args[-1],), k=1 ^ bool(op.attr("tb")))
                return tick(b, product(b, integer(2), rows, inner, columns))
            case name if name in FACTORIZATIONS:
                m, n = (b.op("dim", args, k=k) for k in (0, 1))
                tall, square = FACTORIZATIONS[name]
                thirds = b.op("add", (product(b, integer(tall), m, n, n), product(b, integer(square), n, n, n)))
                return tick(b, b.op("div", (thirds, integer(3))))
            case "lapack_triangular":
                return tick(b, product(b, b.op("dim", args[-1:], k=0), elements(b, args[-1])))
            case "concat":
                return tick(b, b.op("add", (elements(b, args[0]), elements(b, args[1]))))
            case "fill":
                return tick(b, product(b, args[0], elements(b, args[1])))
            case "iota":
                return tick(b, args[0])
            case "array":
                return tick(b, product(b, integer(len(args)), elements(b, args[0])))
            case "update" if rank_of(args[1].ty):
                return tick(b, elements(b, args[1]))
            case "acc_add" if rank_of(args[0].ty):  # of null and something, nothing is to be done
                return tick(b, b.op("min", (elements(b, args[0]), elements(b, args[1]))))
            case "acc_zeros":
                return tick(b, self.zeros(b, args[0], args[1:]))
            case "acc_index" | "acc_slice":
                more, new = elements(b, args[1]), self.zeros(b, args[0], args[2 : 2 + op.attr("rank")])
                if rank_of(args[1].ty):  # of null, nothing is added and nothing made
                    new = b.op("mul", (new, b.op("min", (more, integer(1)))))
                return tick(b, b.op("add", (new, more)))
            case _:
                return 1

    def zeros(self, b: Builder, array: f.Atom, dims: tuple[f.Atom, ...]) -> f.Atom:
        """How many elements are made if an array is null."""
        if isinstance(array, f.Const):
            return product(b, *dims)
        return b.op("select", (b.op("is_null", (array,)), product(b, *dims), integer(0)))


def elements(b: Builder, atom: f.Atom) -> f.Atom:
    """How many there are; of null, none."""
    dims = [b.op("dim", (atom,), k=k) for k in range(rank_of(atom.ty))]
    return product(b, *dims) if dims else integer(1)


def product(b: Builder, first: f.Atom, *rest: f.Atom) -> f.Atom:
    for atom in rest:
        first = b.op("mul", (first, atom))
    return first


def tick(b: Builder, count: f.Atom) -> int:
    b.binds.append(f.Bind((), f.Op("tick", (count,))))
    return 0
