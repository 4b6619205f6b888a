"""The results of a Par that are arrays, row by row.  The first point tells the shape, and the others must agree;
without points, the Par tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.ops.arrays import RAGGED
from dplc.flat.types import rank_of
from dplc.flat.walk import used
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.layout import struct
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type
from dplc.passes.kernels.nest import Level


@node
class Rows:
    """Results of a Par that are written together: `results` of its points, `counts` of its dimensions."""

    e: BodyEmitter
    results: tuple[f.Atom, ...]
    counts: tuple[str, ...]
    span: f.Span

    def place(self, number: str, made: Values) -> Values:
        """Copies the results of a point into the arrays, which the first point allocates."""
        e, w = self.e, self.e.w
        rows = [as_array(atom, e.value(atom)) for atom in self.results]
        ragged = e.site(self.span, RAGGED)
        types = [leaf for row in rows for leaf in ("ptr", "ptr", *("i64",) * (len(self.counts) + len(row.dims)))]

        def allocate() -> Values:
            fresh = [arrays.new_checked(e, row.elem, [*self.counts, *row.dims]) for row in rows]
            return [leaf for array in fresh for leaf in array.values]

        first = w.let(f"icmp eq i64 {number}, 0")
        state = after = w.choose(first, types, allocate, lambda: made)
        for row, atom in zip(rows, self.results, strict=True):
            size = 2 + len(self.counts) + len(row.dims)
            inner = state[size - len(row.dims) : size]
            to = w.at(state[1], w.mul(number, w.scale(w.product(inner), row.size)))
            if isinstance(atom.ty, f.Arr):
                arrays.check_shape(e, inner, row.dims, ragged)
                arrays.copy_elements(e, row.elem, to, row.data, w.product(row.dims))
                e.drop(atom.ty, e.value(atom))
            else:
                e.put(atom.ty, e.value(atom), to)
            state = state[size:]
        return after

    def or_empty(
        self, last: Values, total: str, variables: list[f.Var], shapes: Callable[[int, list[str]], list[str]]
    ) -> Values:
        """The arrays, or arrays without elements if there are no points."""

        def empty() -> Values:
            unknown = [["0"] * (rank_of(var.ty) - len(self.counts)) for var in variables]
            made = [
                arrays.new_block(self.e, expect_type(f.Arr, var.ty).elem, "0", shapes(k, unknown[k]))
                for k, var in enumerate(variables)
            ]
            return [leaf for array in made for leaf in array.values]

        types = [leaf for var in variables for leaf in ("ptr", "ptr", *("i64",) * rank_of(var.ty))]
        return self.e.w.choose(self.e.w.let(f"icmp sgt i64 {total}, 0"), types, lambda: last, empty)


@node
class Row:
    """A result of a point that is written by its elements: a row of this shape, or one number."""

    elem: f.Type
    items: tuple[f.Atom, ...]
    shape: tuple[int, ...]
    arrays: tuple[f.Atom, ...] = ()  # literals that are not made: the row, and the rows that it is made of

    @property
    def dims(self) -> list[str]:
        return [str(n) for n in self.shape]


def shape_of(e: BodyEmitter, levels: Sequence[Level], counts: Sequence[str], k: int, row: Sequence[str]) -> list[str]:
    """The dimensions of result `k` of a nest: the counts of the loops, and those of a row.  Inside of a loop without
    steps, dimensions are those that its Par tells, or 0."""
    left, dims = list(counts), list(row)
    for level in reversed(levels):
        own = [left.pop() for _ in level.par.space][::-1]
        told = [e.one(n) for n in level.par.outs[k].inner]
        told = told or ["0"] * (len(row) if level is levels[-1] else 0)
        none = None
        for i, (one, other) in enumerate(zip(dims, told, strict=False)):
            if one != other:
                none = none or e.w.let(f"icmp eq i64 {e.w.product(own)}, 0")
                dims[i] = e.w.let(f"select i1 {none}, i64 {other}, i64 {one}")
        dims = level.par.outs[k].ordered([*own, *dims])
    return dims


def addresses(
    e: BodyEmitter, out: f.Out, row: Row, data: str, number: str, space: Sequence[f.Var], counts: Sequence[str]
) -> Values:  # fmt: skip
    """Where the numbers are that point `number` keeps in an array with these `data`."""
    w, size = e.w, struct(row.elem).size
    if not out.order:
        start = w.element(data, number, size * len(row.items))
        return [w.at(start, i * size) for i in range(len(row.items))]
    lengths, steps = [*counts, *row.dims], dict[int, str]()
    order = out.ordered(range(len(lengths)))
    for d, k in enumerate(order):
        steps[k] = w.product([lengths[later] for later in order[d + 1 :]])
    start = reduce(w.add, [w.mul(e.one(index), steps[k]) for k, index in enumerate(space)])
    found: Values = []
    for at in product(*map(range, row.shape)):
        inside = [w.mul(str(i), steps[len(counts) + k]) for k, i in enumerate(at) if i]
        found.append(w.element(data, reduce(w.add, inside, start), size))
    return found


def in_pieces(par: f.Par) -> tuple[tuple[f.Bind, ...], dict[int, Row]]:
    """The results that are kept in pieces, and the bindings of the body without the arrays made of these; no rows if a
    result is no such array."""
    body, keeps = par.body, [k for k, out in enumerate(par.outs) if out.kind == "keep"]
    made = {bind.vars[0]: bind.rhs for bind in body.binds if isinstance(bind.rhs, f.Op) and bind.rhs.op == "array"}
    found = {k: row for k in keeps if (row := row_of(body.results[k], made)) is not None}
    gone = [array for row in found.values() for array in row.arrays]
    kept = tuple([bind for bind in body.binds if not is_gone(bind, gone)])
    others = tuple([atom for k, atom in enumerate(body.results) if not (k in found and found[k].shape)])
    again = len(set(gone)) < len(gone) or any(atom in gone for atom in used(f.Block(kept, others)))
    return (body.binds, {}) if again or len(found) < len(keeps) else (kept, found)


def is_gone(bind: f.Bind, gone: list[f.Atom]) -> bool:
    """True for what makes one of these arrays, or gives it back."""
    match bind:
        case f.Bind((var,), _):
            return var in gone
        case f.Bind((), f.Op("drop", (array,))):
            return array in gone
        case _:
            return False


def row_of(atom: f.Atom, made: dict[f.Var, f.Op]) -> Row | None:
    if not isinstance(atom.ty, f.Arr):
        return Row(atom.ty, (atom,), ())
    op = made.get(atom) if isinstance(atom, f.Var) else None
    if op is None or not isinstance(op.args[0].ty, f.Num | f.Arr):
        return None
    rows = [row_of(item, made) for item in op.args]
    inner = [row for row in rows if row is not None]
    if len(inner) < len(rows) or len({row.shape for row in inner}) > 1:
        return None
    items = tuple([item for row in inner for item in row.items])
    parts = tuple([array for row in inner for array in row.arrays])
    return Row(inner[0].elem, items, (len(rows), *inner[0].shape), (atom, *parts))


def with_fields(binds: tuple[f.Bind, ...], pieces: dict[int, Row]) -> tuple[tuple[f.Bind, ...], dict[int, Row]]:
    """The results that are tuples of numbers of one type by these numbers, and the bindings without such tuples."""
    made = {bind.vars[0]: bind.rhs for bind in binds if isinstance(bind.rhs, f.TupMake)}
    found = {k: items for k, row in pieces.items() if (items := fields(row.items[0], made))}
    gone = {atom for k in found for atom in tuples(pieces[k].items[0], made)}
    kept = tuple([bind for bind in binds if not (len(bind.vars) == 1 and bind.vars[0] in gone)])
    if not gone.isdisjoint(used(f.Block(kept, ()))):
        return binds, pieces
    return kept, {k: Row(found[k][0].ty, found[k], ()) if k in found else row for k, row in pieces.items()}


def fields(atom: f.Atom, made: dict[f.Var, f.TupMake]) -> tuple[f.Atom, ...]:
    """The numbers in a tuple, if they are of one type."""
    if not isinstance(atom, f.Var) or atom not in made:
        return ()
    parts = [fields(item, made) if isinstance(item.ty, f.Tup) else (item,) for item in made[atom].items]
    items = tuple([item for part in parts for item in part]) if all(parts) else ()
    return items if len({item.ty for item in items}) == 1 else ()


def tuples(atom: f.Atom, made: dict[f.Var, f.TupMake]) -> Iterator[f.Var]:
    """A tuple and the tuples in it."""
    if isinstance(atom, f.Var) and atom in made:
        yield atom
        for item in made[atom].items:
            yield from tuples(item, made)


def as_array(atom: f.Atom, values: Values) -> Array:
    """A result as a row; a scalar is a row without dimensions and without data."""
    return arrays.array_of(atom.ty, values) if isinstance(atom.ty, f.Arr) else Array(atom.ty, "null", "null", ())
