"""Finds sweeps: products that sum the rows of a matrix, each times a number that follows from the product of the row
with a vector.

    y = matmul a x; e = par i < n to keep { r = index y i; ... }; g = matmul ta=true a e

Everything on the way from y to e has to be done row by row, so all of it can be done by blocks of rows
(`row_blocks.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dpl.node import record

from dplc.flat import term as f
from dplc.flat.build import integer
from dplc.flat.dims import Dims
from dplc.flat.ops.row import Dim
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, every, is_in, mentions, names, needed, own_reads, rhs_mentions
from dplc.narrow import expect_type
from dplc.passes.parallel.checked_places import CheckedPlaces

CALM = f.TupMake | f.TupGet | f.If | f.Switch | f.For | f.Par  # what ends, if what is in it does


@record
class Sweep:
    """A product `total` that sums the rows of `matrix`, and the `path` to its other factor from products of the rows.
    `lengths` are those of the matrix, if they are known.  `rows` are the arrays on the path: they have a number for
    each row.  `before` are the bindings that do not depend on the path.  Behind the product come those `after` it,
    which read the arrays that are `kept`.  The sum of rows is a column or a row."""

    matrix: f.Var
    lengths: Sequence[f.Const | None]
    total: f.Bind
    is_column: bool
    path: Sequence[f.Bind]
    rows: Sequence[f.Var]
    before: Sequence[f.Bind]
    kept: Sequence[f.Var]
    after: Sequence[f.Bind]


def is_product(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and bind.rhs.op in ("matmul", "matmul_acc")


def factors(op: f.Op) -> Iterator[tuple[f.Var, f.Atom, bool]]:
    """Each factor of a product, the other one, and whether its rows are summed; else its columns are."""
    a, b = op.args[-2:]
    if isinstance(a, f.Var):
        yield a, b, bool(op.attr("ta"))
    if isinstance(b, f.Var):
        yield b, a, not op.attr("tb")


def may_sweep(body: f.Block) -> bool:
    """False for code without products of the rows of a matrix and a vector that come before a sum of these rows."""
    vectors, matrices = set[str](), set[str]()
    for bind in every(body):
        match bind.rhs:
            case f.Op("reshape", (_, *shape)) if integer(1) in shape:
                vectors.update(names(bind.vars))
            case f.Op("matmul") as op:
                for matrix, other, sums_rows in factors(op):
                    if not is_in(other, vectors):
                        continue
                    if sums_rows and matrix.name in matrices:
                        return True
                    vectors.update(names(bind.vars))
                    matrices.update(() if sums_rows else (matrix.name,))
            case _:
                pass
    return False


def is_array(var: f.Var) -> bool:
    """True for an array of one dimension."""
    return isinstance(var.ty, f.Arr) and var.ty.rank == 1


class Sweeps:
    """The sweeps of one function."""

    def __init__(self, body: f.Block, dims: Dims) -> None:
        self.dims, self.places = dims, CheckedPlaces(body, dims)

    def up_to(self, binds: Sequence[f.Bind], at: int, results: Sequence[f.Atom], least: int) -> Sweep | None:
        """The sweep that ends with binding number `at` of a block with these results, if its matrix may have more than
        so many elements."""
        total = binds[at]
        if not is_product(total) or expect_type(f.Op, total.rhs).op != "matmul":
            return None
        for matrix, vector, sums_rows in factors(expect_type(f.Op, total.rhs)):
            shape = self.dims.shape(matrix)
            if not sums_rows or not isinstance(vector, f.Var) or (shape and shape[0] * shape[1] <= least):
                continue
            path = self.path(binds[:at], matrix, vector)
            rows = self.rows(path, matrix) if path else None
            if path and rows and vector in rows and (parts := self.parts(path, rows, binds, at, results)):
                is_column = matrix == expect_type(f.Op, total.rhs).args[0]
                lengths = [n if isinstance(n := self.dims.of(matrix, k), f.Const) else None for k in range(2)]
                return Sweep(matrix, lengths, total, is_column, path, rows, *parts)
        return None

    def path(self, before: Sequence[f.Bind], matrix: f.Var, vector: f.Var) -> list[f.Bind]:
        """The bindings on the way to a vector from products of the matrix's rows, these included."""
        found, varying = list[f.Bind](), set[str]()
        for bind in needed(before, {vector.name}):
            if self.is_first(bind, matrix) or not varying.isdisjoint(rhs_mentions(bind.rhs)):
                found.append(bind)
                varying.update(names(bind.vars))
        return found

    def is_first(self, bind: f.Bind, matrix: f.Var) -> bool:
        """True for the products of a matrix's rows with one vector."""
        if not is_product(bind):
            return False
        op = expect_type(f.Op, bind.rhs)
        by_rows = any(one == matrix and not sums_rows for one, _, sums_rows in factors(op))
        return op.op == "matmul" and by_rows and self.is_row(bind.vars[0], self.dims.of(matrix, 0))

    def is_row(self, var: f.Var, count: Dim | None) -> bool:
        """True for so many numbers: an array, also as a matrix of one column or row."""
        lengths = [self.dims.of(var, k) for k in range(expect_type(f.Arr, var.ty).rank)]
        others = [n for n in lengths if not self.dims.equal(n, count)]
        return len(others) == len(lengths) - 1 and all(n == integer(1) for n in others)

    def rows(self, path: Sequence[f.Bind], matrix: f.Var) -> list[f.Var] | None:
        """The arrays of rows that a path makes; None if it is not done row by row."""
        rows, count = list[f.Var](), self.dims.of(matrix, 0)
        for bind in path:
            known = {*names(rows)}
            match bind.rhs:
                case f.Op("matmul", args) if self.is_first(bind, matrix) and known.isdisjoint(names(args)):
                    rows += bind.vars
                case f.Op("reshape", (f.Var(name), *_)) if name in known and self.is_row(bind.vars[0], count):
                    rows += bind.vars
                case f.Par() as par if self.is_by_rows(par, known, count):
                    rows += [var for var, out in zip(bind.vars, par.outs, strict=True) if out.kind == "keep"]
                case _:
                    return None
        made = {name for bind in path for name in names(bind.vars)} - {*names(rows)}
        return None if any(not made.isdisjoint(rhs_mentions(bind.rhs)) for bind in path) else rows

    def is_by_rows(self, par: f.Par, rows: Collection[str], count: Dim | None) -> bool:
        """True for numbers of each row, that follow from those that arrays of rows have for it."""
        if len(par.space) != 1 or any(out.order or out.inner or out.acc for out in par.outs):
            return False
        ((index, points),) = par.space
        own = [array for array, _ in own_reads(par.body, (index,)) if array.name in rows]
        read = [name for name in mentions(par.body) if name in rows]
        numbers = all(isinstance(x.ty, f.Num) for x in par.body.results)
        return numbers and len(read) == len(own) and self.dims.equal(points, count) and self.may_move(par)

    def parts(
        self, path: Sequence[f.Bind], rows: Collection[f.Var], binds: Sequence[f.Bind], at: int,
        results: Sequence[f.Atom],
    ) -> tuple[Sequence[f.Bind], Sequence[f.Var], Sequence[f.Bind]] | None:  # fmt: skip
        """What is done before the loop to binding `at`, which arrays of rows are kept for others than the path, and
        what is done after it: what depends on the path, and what of the path itself is no array of rows."""
        on_path = {id(bind) for bind in path}
        known = {name for bind in path for name in names(bind.vars)}
        before, late = list[f.Bind](), list[f.Bind]()
        for bind in binds[:at]:
            if id(bind) not in on_path and known.isdisjoint(rhs_mentions(bind.rhs)):
                before.append(bind)
            elif id(bind) not in on_path:
                late.append(bind)
                known.update(names(bind.vars))
        if not all(self.may_move(bind.rhs) for bind in late):
            return None
        wanted = {*names(results), *[name for bind in binds[at + 1 :] for name in rhs_mentions(bind.rhs)]}
        after = needed(late, wanted)
        wanted.update(name for bind in after for name in rhs_mentions(bind.rhs))
        for bind in reversed(path):
            if any(var.name in wanted and not (var in rows and is_array(var)) for var in bind.vars):
                if is_product(bind):
                    return None
                after.append(bind)
                wanted.update(rhs_mentions(bind.rhs))
        done = {id(bind) for bind in after}
        kept = [var for bind in path if id(bind) not in done for var in bind.vars if var.name in wanted]
        return before, kept, [bind for bind in binds[:at] if id(bind) in done]

    def may_move(self, rhs: f.Rhs) -> bool:
        """True for what has no effects, ends, and cannot fail."""
        done = [rhs, *(bind.rhs for block in blocks(rhs) for bind in every(block))]
        if not all(OPS[one.op].quiet if isinstance(one, f.Op) else isinstance(one, CALM) for one in done):
            return False
        return not self.places.may_fail(rhs)
