"""flat -> flat where a matrix is multiplied with a vector, and its transpose with what follows from each row of that
product, by blocks of rows: each is still in the nearest cache when it is read again (cache blocking and fusion of a
product with that of the transpose: GEMVT of the BLAS, Howell, Demmel et al. 2008).

    y = matmul a x                            g = for j < n / SOME + 1 state (g = zeros) {
    e = par i < n to keep {                     first = mul j SOME; here = min (sub n first) SOME
      r = index y i; s = index b i              part = slice a first (add first here)
      yield sub r s }                   =>      y = matmul part x
    g = matmul ta=true a e                      e = par k < here to keep {
                                                  i = add first k; r = index y k; s = index b i
                                                  yield sub r s }
                                                yield matmul_acc ta=true g part e }

So are the gradients of linear models, steps of conjugate gradients, power iterations and iterative scaling.  Products
of a matrix with one vector take as long as it takes to read the matrix.  What else needs the numbers of the rows gets
them from arrays that the blocks write: y, or e.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer, number_zero
from dplc.flat.copy import Copier
from dplc.flat.kinds import any_of, kinds
from dplc.flat.known_sizes import known_sizes
from dplc.flat.types import elem_of
from dplc.flat.walk import is_in, names, needed, supply_for, with_binds, with_body, with_inner
from dplc.narrow import expect_type
from dplc.passes.parallel.row_sweeps import Sweep, Sweeps, may_sweep

SOME = 1 << 14  # elements of a block, which stays in the second-level cache
TALL = 8  # rows of a tile
PRODUCTS = any_of("matmul", "matmul_acc")


def row_blocks(program: f.Program) -> f.Program:
    found = [fn for fn in program.fns.values() if kinds(fn.body) & PRODUCTS and may_sweep(fn.body)]
    if not found:
        return program
    sizes, supply = known_sizes(program), supply_for(program)
    made = {fn.name: with_body(fn, _Blocks(Sweeps(fn.body, sizes.dims(fn)), supply).block(fn.body)) for fn in found}
    return replace(program, fns=program.fns | made)


class _Blocks:
    """One function."""

    def __init__(self, sweeps: Sweeps, supply: f.Supply) -> None:
        self.sweeps, self.supply = sweeps, supply

    def block(self, block: f.Block) -> f.Block:
        if not kinds(block) & PRODUCTS:
            return block
        binds, at = [with_inner(bind, self.block) for bind in block.binds], 0
        while at < len(binds):
            sweep = self.sweeps.up_to(binds, at, block.results, 2 * SOME)
            if sweep is None:
                at += 1
                continue
            done = [*sweep.before, *_Loop(sweep, Builder(self.supply)).written()]
            binds, at = [*done, *sweep.after, *binds[at + 1 :]], len(done)
        return with_binds(block, binds)


class _Loop(Copier):
    """Writes the loop of a sweep.  It copies the path for the rows of a block: `here` rows, from row `first` on."""

    def __init__(self, sweep: Sweep, b: Builder) -> None:
        super().__init__(b.supply, {})
        self.sweep, self.b, self.block_number = sweep, b, b.var("block", f.I64)
        self.rows = {*names(sweep.rows)}
        self.points: dict[str, f.Var] = {}  # the places of rows in a block, by the names of their places in all rows
        self.count, self.width = [n or b.op("dim", (sweep.matrix,), k=k) for k, n in enumerate(sweep.lengths)]
        self.height = self.rows_of_block()

    def written(self) -> tuple[f.Bind, ...]:
        """The loop, behind what it needs."""
        b, sweep = self.b, self.sweep
        blocks = b.op("add", (b.op("div", (self.count, self.height)), integer(1)))
        outs = (*sweep.total.vars, *sweep.kept)
        arrays = [b.op("fill", (self.count, number_zero(elem_of(var.ty))), unchecked=True) for var in sweep.kept]
        inits = (self.zeros(), *arrays)
        state = tuple([b.var(var.name, var.ty) for var in outs])
        with b.inside() as inner:
            results = self.step(*state)
        b.binds.append(f.Bind(outs, f.For(self.block_number, blocks, state, inits, block_of(inner, results))))
        return block_of(b.binds, ()).binds

    def rows_of_block(self) -> f.Atom:
        """The number of rows of a block: whole tiles."""
        b = self.b
        if isinstance(self.width, f.Const) and isinstance(self.width.value, int):
            return integer(TALL * max(SOME // TALL // max(self.width.value, 1), 2))
        tiles = b.op("div", (integer(SOME // TALL), b.op("max", (self.width, integer(1)))))
        return b.op("mul", (b.op("max", (tiles, integer(2))), integer(TALL)))

    def zeros(self) -> f.Var:
        """What the sum over all rows begins with."""
        b, (total,) = self.b, self.sweep.total.vars
        row = b.op("fill", (self.width, number_zero(elem_of(total.ty))), unchecked=True)
        shape = (self.width, integer(1)) if self.sweep.is_column else (integer(1), self.width)
        return b.op("reshape", (row, *shape), unchecked=True)

    def step(self, total: f.Var, *arrays: f.Var) -> tuple[f.Var, ...]:
        """Writes what is done with a block of rows; what becomes of the sum and of the arrays that are kept."""
        b, sweep = self.b, self.sweep
        self.first = b.op("mul", (self.block_number, self.height))
        self.here = b.op("min", (self.height, b.op("sub", (self.count, self.first))))
        ends = (self.first, b.op("add", (self.first, self.here)))
        self.part = b.op("slice", (sweep.matrix, *ends), unchecked=True)
        for bind in sweep.path:
            rhs = self.of_rows(bind)
            b.binds.append(f.Bind(tuple([self.var(var) for var in bind.vars if var in sweep.rows]), rhs))
        product = expect_type(f.Op, sweep.total.rhs)
        added = b.op("matmul_acc", (total, *self.factors(product)), product.span, **dict(product.attrs))
        return (added, *[self.kept(array, var) for array, var in zip(arrays, sweep.kept, strict=True)])

    def of_rows(self, bind: f.Bind) -> f.Rhs:
        """What a binding of the path does with these rows."""
        match bind.rhs:
            case f.Op("matmul") as op:
                return replace(op, args=self.factors(op))
            case f.Op("reshape", (array, *shape)) as op:
                lengths = [n if n == integer(1) else self.here for n in shape]
                return f.Op("reshape", (self.atom(array), *lengths), (("unchecked", True),), op.span)
            case _:
                return self.points_of_rows(expect_type(f.Par, bind.rhs))

    def factors(self, product: f.Op) -> tuple[f.Atom, ...]:
        """The factors of a product, of these rows."""
        return tuple([self.part if x == self.sweep.matrix else self.atom(x) for x in product.args[-2:]])

    def points_of_rows(self, par: f.Par) -> f.Par:
        """The points of these rows, which overwrite only what is of these rows."""
        ((index, _),) = par.space
        self.points[index.name] = self.b.var(index.name, f.I64)
        number = f.Bind((self.var(index),), f.Op("add", (self.first, self.points[index.name])))
        kept = [(x, out.target) for x, out in zip(par.body.results, par.outs, strict=True) if out.kind == "keep"]
        results = [x for x, _ in kept]
        binds = self.binds(tuple(needed(par.body.binds, names(results))))
        free = self.rows.difference(names(self.sweep.kept))
        targets = [self.atom(target) if target and is_in(target, free) else None for _, target in kept]
        body = block_of((number, *binds), self.operands(tuple(results)))
        outs = tuple([f.Out("keep", target=target) for target in targets])
        return f.Par(((self.points[index.name], self.here),), body, outs, par.span)

    def rhs(self, rhs: f.Rhs) -> f.Rhs:
        """A copy; arrays of rows are read at the row's place in its block."""
        match rhs:
            case f.Op("index", (f.Var(name) as array, f.Var() as index, *rest)) if name in self.rows:
                return replace(rhs, args=(self.atom(array), self.points[index.name], *self.operands(tuple(rest))))
            case _:
                return super().rhs(rhs)

    def kept(self, array: f.Var, var: f.Var) -> f.Var:
        """Writes the numbers of these rows where they are in an array of all rows."""
        b = self.b
        row, state = b.var("row", f.I64), b.var(array.name, array.ty)
        with b.inside() as binds:
            number = b.op("index", (self.atom(var), row), unchecked=True)
            place = b.op("add", (self.first, row))
            after = b.op("update", (state, number, place), unchecked=True)
        return b.one(f.For(row, self.here, (state,), (array,), block_of(binds, (after,))), array.ty, array.name)
