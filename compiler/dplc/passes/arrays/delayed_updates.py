"""Outer products that the steps of a loop add to a matrix are added some at a time, as one product of matrices.

    c' = for j < n state (c = a) {             c1, x1, y1, k1 = for j < n state (c = a, x = null, y = null, k = 0) {
      ...                                        ...
      u = reshape v p 1                          x2 = acc_index x v SOME p k
      t = reshape w q 1                 =>       y2 = acc_index y w SOME q k
      c = matmul_acc tb=true c u t               k2 = add k 1
      yield c }                                  if k2 >= SOME { c2 = matmul_acc ta=true c x2 y2
                                                                yield c2, null, null, 0 }
                                                         else { yield c, x2, y2, k2 } }
                                               c' = if k1 > 0 { the same with the first k1 rows } else { yield c1 }

The gradient of weights that a loop multiplies with its state comes like this.  An outer product reads and writes all of
the matrix, for one multiplication each; a product of matrices does so once for all rows that were collected (delayed
rank-one updates).  The additions may be in branches, and a step may have several: then there is room for more rows.
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.walk import blocks as blocks_of
from dplc.flat.walk import every, names, rhs_mentions, with_branches

SOME = 32  # rows that are collected
FEW = 8  # steps for which it does not pay
SMALL = 1024  # elements of a matrix that stay in the first-level cache, and in few vectors


def updated_late(bind: f.Bind, supply: Callable[[], f.Supply]) -> list[f.Bind]:
    """The loop with its outer products collected."""
    loop = bind.rhs
    assert isinstance(loop, f.For)
    if isinstance(loop.count, f.Const) and isinstance(loop.count.value, int) and loop.count.value < FEW:
        return [bind]
    columns = {inner.vars[0].name: inner.rhs for inner in every(loop.body)
               if isinstance(inner.rhs, f.Op) and is_column(inner.rhs)}  # fmt: skip
    most = sum(outer_product(inner.rhs, columns) is not None for inner in every(loop.body))
    after: list[f.Bind] = []
    for k, var in enumerate(loop.state):
        if most and var.ty in MATRICES:
            try:
                bind, last = _Delayed(bind, k, columns, most, supply()).written()
            except Unfit:
                continue
            after += last
    return [bind, *after]


MATRICES = (f.Arr(f.F64, 2), f.Arr(f.Num("f32"), 2))


class Unfit(Exception):
    """More happens to a matrix than that outer products are added."""


@node
class Rows:
    """What was collected: the left and the right factors, row by row, and their number."""

    left: f.Atom
    right: f.Atom
    count: f.Atom

    def atoms(self) -> tuple[f.Atom, ...]:
        return self.left, self.right, self.count


@node
class Factor:
    """A factor of a product of matrices: dimension `inner` is summed over.  `of` is the vector that it is made of, and
    its length, if it is known to be one."""

    matrix: f.Atom
    inner: int
    of: tuple[f.Atom, f.Atom] | None


def is_column(op: f.Op) -> bool:
    """True for a vector as a matrix."""
    return op.op == "reshape" and len(op.args) == 3 and is_vector(op.args[0])


def is_vector(atom: f.Atom) -> bool:
    return isinstance(atom.ty, f.Arr) and atom.ty.rank == 1


def outer_product(rhs: f.Rhs, columns: dict[str, f.Op]) -> tuple[Factor, Factor] | None:
    """The factors of an outer product that is added to a matrix, if this has many elements."""
    if not isinstance(rhs, f.Op) or rhs.op != "matmul_acc":
        return None
    _, a, b = rhs.args
    factors = factor(a, 0 if rhs.attr("ta") else 1, columns), factor(b, 1 if rhs.attr("tb") else 0, columns)
    lengths = [one.of[1] for one in factors if one.of is not None]
    sizes = [n.value for n in lengths if isinstance(n, f.Const) and isinstance(n.value, int)]
    few = 1 in sizes or (len(sizes) == 2 and sizes[0] * sizes[1] < SMALL)
    return factors if lengths and not few else None


def factor(matrix: f.Atom, inner: int, columns: dict[str, f.Op]) -> Factor:
    column = columns.get(matrix.name) if isinstance(matrix, f.Var) else None
    if column is None or column.args[1 + inner] != integer(1):
        return Factor(matrix, inner, None)
    return Factor(matrix, inner, (column.args[0], column.args[2 - inner]))


class _Delayed:
    """State variable `k` of a loop, to which outer products are added: at most so many in a step."""

    def __init__(self, bind: f.Bind, k: int, columns: dict[str, f.Op], most: int, supply: f.Supply) -> None:
        loop = bind.rhs
        assert isinstance(loop, f.For)
        self.bind, self.loop, self.k, self.columns = bind, loop, k, columns
        self.b = Builder(supply)
        self.room = integer(SOME + most - 1)  # rows: whether there are enough is asked after a step only
        self.attrs: set[tuple[tuple[str, object], ...]] = set()

    def written(self) -> tuple[f.Bind, list[f.Bind]]:
        """The loop, and what follows it."""
        loop, k, b, width = self.loop, self.k, self.b, len(self.loop.state)
        matrix = loop.state[k]
        before, total = self.fresh(matrix.ty), b.var("c", matrix.ty)
        with b.inside() as binds:
            rows = self.block(loop.body, matrix, k, before)
            if len(self.attrs) != 1:
                raise Unfit
            results = list(loop.body.results)
            results[k], *others = self.where(b.op("ge", (rows.count, integer(SOME))), matrix, rows)
        zeros = f.Const(None, matrix.ty), f.Const(None, matrix.ty), integer(0)
        made = f.For(
            loop.index, loop.count, (*loop.state, *vars_of(before)), (*loop.inits, *zeros),
            block_of(binds, (*results[:width], *others, *results[width:])), loop.collect,
        )  # fmt: skip
        last = self.fresh(matrix.ty)
        outs = [total if i == k else var for i, var in enumerate(self.bind.vars)]
        with b.inside() as after:
            some = b.op("gt", (last.count, integer(0)))
            with b.inside() as there:
                first = [b.op("slice", (x, integer(0), last.count), unchecked=True) for x in (last.left, last.right)]
                added = self.product(total, *first)
            arms = block_of(there, (added,)), f.Block((), (total,))
            b.binds.append(f.Bind((self.bind.vars[k],), f.If(some, *arms)))
        return f.Bind((*outs[:width], *vars_of(last), *outs[width:]), made), list(block_of(after, ()).binds)

    def fresh(self, ty: f.Type) -> Rows:
        return Rows(self.b.var("left", ty), self.b.var("right", ty), self.b.var("count", f.I64))

    def product(self, matrix: f.Atom, left: f.Atom, right: f.Atom) -> f.Var:
        (rest,) = self.attrs
        attrs = (("ta", True), ("tb", False), *rest)
        return self.b.one(f.Op("matmul_acc", (matrix, left, right), attrs), matrix.ty, "c")

    def where(self, full: f.Atom, matrix: f.Var, rows: Rows) -> tuple[f.Var, ...]:
        """The matrix and the rows after a step: if there are enough of them, they are added."""
        b, null = self.b, f.Const(None, matrix.ty)
        with b.inside() as there:
            added = self.product(matrix, rows.left, rows.right)
        made = (b.var("c", matrix.ty), *vars_of(self.fresh(matrix.ty)))
        arms = block_of(there, (added, null, null, integer(0))), f.Block((), (matrix, *rows.atoms()))
        b.binds.append(f.Bind(made, f.If(full, *arms)))
        return made

    def block(self, block: f.Block, matrix: f.Var, at: int, rows: Rows) -> Rows:
        """Writes a block without additions to `matrix`, which becomes result number `at`; returns the rows after it."""
        held = {matrix.name}
        for bind in block.binds:
            if held.isdisjoint(rhs_mentions(bind.rhs)):
                self.b.binds.append(bind)
                continue
            if held.intersection(rhs_mentions(bind.rhs)) != {matrix.name}:
                raise Unfit
            matrix, rows = self.step(bind, matrix, rows)
            held.add(matrix.name)
        if [x for x in names(block.results) if x in held] != [matrix.name] or block.results[at] != matrix:
            raise Unfit
        return rows

    def step(self, bind: f.Bind, matrix: f.Var, rows: Rows) -> tuple[f.Var, Rows]:
        """A binding that adds to the matrix: what it is called then, and the rows."""
        match bind.rhs:
            case f.Op("matmul_acc", (first, *_)) as op if first == matrix:
                if (factors := outer_product(op, self.columns)) is None:
                    raise Unfit
                self.attrs.add(tuple([(name, value) for name, value in op.attrs if name not in ("ta", "tb")]))
                return bind.vars[0], self.collected(factors, rows)
            case f.If() | f.Switch():
                at = self.place(bind.rhs, matrix)
                return bind.vars[at], self.branch(bind, matrix, at, rows)
            case _:
                raise Unfit

    def place(self, branch: f.If | f.Switch, matrix: f.Var) -> int:
        """The number of the result of a branch that is the matrix, with what its arms add."""
        (at, *others) = {arm.results.index(self.last(arm, matrix)) for arm in blocks_of(branch)}
        if others:
            raise Unfit
        return at

    def last(self, block: f.Block, matrix: f.Var) -> f.Var:
        """What the matrix is called at the end of a block, which must return it."""
        for bind in block.binds:
            if matrix.name in rhs_mentions(bind.rhs):
                match bind.rhs:
                    case f.Op():
                        matrix = bind.vars[0]
                    case f.If() | f.Switch() as branch:
                        matrix = bind.vars[self.place(branch, matrix)]
                    case _:
                        raise Unfit
        if matrix not in block.results:
            raise Unfit
        return matrix

    def collected(self, factors: tuple[Factor, Factor], rows: Rows) -> Rows:
        left, right = (self.row(x, one, rows.count) for x, one in zip(rows.atoms(), factors, strict=False))
        return Rows(left, right, self.b.op("add", (rows.count, integer(1))))

    def row(self, rows: f.Atom, one: Factor, count: f.Atom) -> f.Var:
        vector, length = one.of or self.vector(one)
        added = f.Op("acc_index", (rows, vector, self.room, length, count), (("rank", 2),))
        return self.b.one(added, rows.ty, "rows")

    def vector(self, one: Factor) -> tuple[f.Atom, f.Atom]:
        """A matrix of one row or column as a vector, and its length."""
        length = self.b.op("dim", (one.matrix,), k=1 - one.inner)
        return self.b.op("reshape", (one.matrix, length)), length

    def branch(self, bind: f.Bind, matrix: f.Var, at: int, rows: Rows) -> Rows:
        b, arms = self.b, list[f.Block]()
        for arm in blocks_of(bind.rhs):
            with b.inside() as binds:
                after = self.block(arm, matrix, at, rows)
            results = [x for i, x in enumerate(arm.results) if i != at]
            arms.append(block_of(binds, (*results, *after.atoms())))
        joined = self.fresh(matrix.ty)
        outs = [var for i, var in enumerate(bind.vars) if i != at]
        b.binds.append(f.Bind((*outs, *vars_of(joined)), with_branches(bind.rhs, arms)))
        return joined


def vars_of(rows: Rows) -> tuple[f.Var, ...]:
    return tuple([atom for atom in rows.atoms() if isinstance(atom, f.Var)])
