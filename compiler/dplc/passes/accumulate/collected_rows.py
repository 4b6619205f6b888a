"""The code that collects what outer products add to one matrix, as the rows of two others (`delayed_updates`): through
branches, loops and calls."""

from __future__ import annotations

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.build import Builder, block_of, integer
from dplc.flat.remembered import remembered
from dplc.flat.walk import blocks as blocks_of
from dplc.flat.walk import every, names, rhs_mentions, with_branches

SOME = 32  # rows that are collected
SMALL = 1024  # elements of a matrix that stay in the first-level cache, and in few vectors


class Unfit(Exception):
    """More happens to a matrix than that outer products are added."""


@node
class Rows:
    """What was collected: the left and the right factors, row by row, and their number."""

    left: f.Atom
    right: f.Atom
    count: f.Atom

    def atoms(self) -> tuple[f.Atom, ...]:
        """The rows of both factors, and how many there are."""
        return self.left, self.right, self.count

    def vars(self) -> tuple[f.Var, ...]:
        return tuple([atom for atom in self.atoms() if isinstance(atom, f.Var)])


@node
class Factor:
    """A factor of a product of matrices: dimension `inner` is summed over.  `of` is the vector that it is made of, and
    its length, if it is known to be one."""

    matrix: f.Atom
    inner: int
    of: tuple[f.Atom, f.Atom] | None


@node
class Through:
    """A function that takes the matrix as parameter number `param` and gives it back as result number `result`, and the
    name of the one that takes rows, too."""

    fn: str
    inner: str
    param: int
    result: int


@remembered
def columns_of(block: f.Block) -> dict[str, f.Op]:
    """The vectors that a block has as matrices; none if it has no outer product."""
    binds = every(block)
    columns = {bind.vars[0].name: bind.rhs for bind in binds if isinstance(bind.rhs, f.Op) and is_column(bind.rhs)}
    return columns if any(outer_product(bind.rhs, columns) for bind in binds) else {}


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


class Collector:
    """Writes code with the outer products for one matrix collected.  The matrix keeps its names."""

    def __init__(self, columns: dict[str, f.Op], ty: f.Type, supply: f.Supply, through: Through | None = None) -> None:
        self.columns, self.ty, self.through = columns, ty, through
        self.b = Builder(supply)
        self.nothing = Rows(f.Const(None, ty), f.Const(None, ty), integer(0))
        self.attrs: set[tuple[tuple[str, object], ...]] = set()

    def fresh(self) -> Rows:
        return Rows(self.b.var("left", self.ty), self.b.var("right", self.ty), self.b.var("count", f.I64))

    def bound(self, vars_: tuple[f.Var, ...], rhs: f.Rhs, others: tuple[f.Var, ...] = ()) -> Rows:
        """Binds what has the rows as results behind those for `vars_`; returns them."""
        rows = self.fresh()
        self.b.binds.append(f.Bind((*vars_, *rows.vars(), *others), rhs))
        return rows

    def rest(self, total: f.Var, matrix: f.Atom, rows: Rows) -> None:
        """Adds the rows that are left at the end."""
        if len(self.attrs) != 1:
            raise Unfit
        b, (attrs,) = self.b, self.attrs
        some = b.op("gt", (rows.count, integer(0)))
        with b.inside() as there:
            left = b.op("slice", (rows.left, integer(0), rows.count), unchecked=True)
            right = b.op("slice", (rows.right, integer(0), rows.count), unchecked=True)
            added = self.product(matrix, left, right, attrs)
        b.binds.append(f.Bind((total,), f.If(some, block_of(there, (added,)), f.Block((), (matrix,)))))

    def product(self, matrix: f.Atom, left: f.Atom, right: f.Atom, attrs: tuple[tuple[str, object], ...]) -> f.Var:
        """The matrix with the product of the collected rows added."""
        op = f.Op("matmul_acc", (matrix, left, right), (("ta", True), ("tb", False), *attrs))
        return self.b.one(op, self.ty, "c")

    # ---- where the matrix goes

    def result(self, rhs: f.Rhs, matrix: f.Var) -> int:
        """Which result is the matrix, with what is added to it."""
        match rhs:
            case f.If() | f.Switch():
                (at, *others) = {self.last(arm, matrix) for arm in blocks_of(rhs)}
                if not others:
                    return at
            case f.Op("matmul_acc" | "acc_zeros", (first, *_)) if first == matrix:
                return 0
            case f.For() if matrix in rhs.inits:
                return rhs.inits.index(matrix)
            case f.Call(fn, args) if self.through and fn == self.through.fn and args[self.through.param] == matrix:
                return self.through.result
            case _:
                pass
        raise Unfit

    def last(self, block: f.Block, matrix: f.Var) -> int:
        """The same for a block."""
        for bind in block.binds:
            if matrix.name in rhs_mentions(bind.rhs):
                matrix = bind.vars[self.result(bind.rhs, matrix)]
        if matrix not in block.results:
            raise Unfit
        return block.results.index(matrix)

    # ---- the code

    def block(self, block: f.Block, matrix: f.Var, at: int, rows: Rows) -> Rows:
        """Writes the bindings of a block, whose result number `at` is the matrix; returns the rows after them."""
        held = {matrix.name}
        for bind in block.binds:
            mentioned = held.intersection(rhs_mentions(bind.rhs))
            if not mentioned:
                self.b.binds.append(bind)
                continue
            if mentioned != {matrix.name}:
                raise Unfit
            place = self.result(bind.rhs, matrix)
            rows = self.step(bind, place, matrix, rows)
            matrix = bind.vars[place]
            held.add(matrix.name)
        if [x for x in names(block.results) if x in held] != [matrix.name] or block.results[at] != matrix:
            raise Unfit
        return rows

    def step(self, bind: f.Bind, at: int, matrix: f.Var, rows: Rows) -> Rows:
        """Writes a binding that adds to the matrix."""
        match bind.rhs:
            case f.If() | f.Switch():
                return self.branch(bind, at, matrix, rows)
            case _ if list(rhs_mentions(bind.rhs)).count(matrix.name) != 1:
                raise Unfit
            case f.Op("acc_zeros"):
                self.b.binds.append(bind)
                return rows
            case f.Op() as op:
                return self.addition(bind, op, rows)
            case f.Call(_, args, span) if self.through:
                return self.bound(bind.vars, f.Call(self.through.inner, (*args, *rows.atoms()), span))
            case _:
                return self.loop(bind, at, rows)

    def branch(self, bind: f.Bind, at: int, matrix: f.Var, rows: Rows) -> Rows:
        """Collects in the arms of a branch."""
        arms = list[f.Block]()
        for arm in blocks_of(bind.rhs):
            with self.b.inside() as binds:
                after = self.block(arm, matrix, at, rows)
            arms.append(block_of(binds, (*arm.results, *after.atoms())))
        return self.bound(bind.vars, with_branches(bind.rhs, arms))

    def loop(self, bind: f.Bind, at: int, rows: Rows) -> Rows:
        """Collects in a loop, whose state then has the rows."""
        loop, before = bind.rhs, self.fresh()
        assert isinstance(loop, f.For)
        width, results = len(loop.state), loop.body.results
        with self.b.inside() as binds:
            after = self.block(loop.body, loop.state[at], at, before)
        made = f.For(
            loop.index, loop.count, (*loop.state, *before.vars()), (*loop.inits, *rows.atoms()),
            block_of(binds, (*results[:width], *after.atoms(), *results[width:])), loop.collect,
        )  # fmt: skip
        return self.bound(bind.vars[:width], made, bind.vars[width:])

    def addition(self, bind: f.Bind, op: f.Op, rows: Rows) -> Rows:
        """An outer product becomes a row on either side; if there are enough rows, they are added."""
        b, matrix, factors = self.b, op.args[0], outer_product(op, self.columns)
        if factors is None:
            raise Unfit
        attrs = tuple([(name, value) for name, value in op.attrs if name not in ("ta", "tb")])
        self.attrs.add(attrs)
        left, right = (self.row(x, one, rows.count) for x, one in zip(rows.atoms(), factors, strict=False))
        count = b.op("add", (rows.count, integer(1)))
        enough = b.op("ge", (count, integer(SOME)))
        with b.inside() as there:
            added = self.product(matrix, left, right, attrs)
        arms = block_of(there, (added, *self.nothing.atoms())), f.Block((), (matrix, left, right, count))
        return self.bound(bind.vars, f.If(enough, *arms))

    def row(self, rows: f.Atom, one: Factor, count: f.Atom) -> f.Var:
        vector, length = one.of or self.vector(one)
        added = f.Op("acc_index", (rows, vector, integer(SOME), length, count), (("rank", 2),))
        return self.b.one(added, rows.ty, "rows")

    def vector(self, one: Factor) -> tuple[f.Atom, f.Atom]:
        """A matrix of one row or column as a vector, and its length."""
        length = self.b.op("dim", (one.matrix,), k=1 - one.inner)
        return self.b.op("reshape", (one.matrix, length)), length
