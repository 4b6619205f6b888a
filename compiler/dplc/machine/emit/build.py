"""Build -> loops that write an array element by element.

A Build whose body ends in another Build of a known length becomes one array and a nest of loops: the matrix `[for i <
n, j < m -> e]` has no rows of its own.  Rows that are arrays are copied into place.  The first row tells the shape, and
the others must agree; without rows, the Build tells it.
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import atoms, used
from dplc.machine.emit import arrays, interrupts, threads
from dplc.machine.emit.arrays import Array
from dplc.machine.emit.body import BodyEmitter
from dplc.machine.emit.emitter import zeros
from dplc.machine.emit.layout import leaves
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure
from dplc.narrow import expect_type


@node
class Level:
    """One loop of a nest: what its body does before the inner loop, and after it (only drops)."""

    build: f.Build
    before: tuple[f.Bind, ...]
    after: tuple[f.Bind, ...]


def nest(build: f.Build) -> list[Level]:
    """The loops, outermost first."""
    levels = []
    while True:
        binds = build.body.binds
        at = next((i for i, bind in enumerate(binds) if bind.vars and bind.vars == build.body.results), -1)
        inner = binds[at].rhs if at >= 0 else None
        if not isinstance(inner, f.Build) or not all(_is_drop(bind) for bind in binds[at + 1 :]):
            break
        if any(atom in (build.index, *(var for bind in binds for var in bind.vars)) for atom in atoms(inner)):
            break
        levels.append(Level(build, binds[:at], binds[at + 1 :]))
        build = inner
    return [*levels, Level(build, build.body.binds, ())]


def _is_drop(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "drop"


@node
class Row:
    """A result of the innermost body that is written by its elements: a row of this shape, or one number."""

    elem: f.Type
    items: tuple[f.Atom, ...]
    shape: tuple[int, ...]

    @property
    def dims(self) -> list[str]:
        return [str(n) for n in self.shape]


def rows(body: f.Block) -> tuple[f.Block, list[Row]]:
    """The results in pieces, and the body without the arrays made of these; no rows if a result is no such array."""
    made = {bind.vars[0]: bind.rhs for bind in body.binds if isinstance(bind.rhs, f.Op) and bind.rhs.op == "array"}
    found = [row_of(atom, made) for atom in body.results]
    gone = {atom for atom, row in zip(body.results, found, strict=True) if row is not None and row.shape}
    if None in found or len(gone) < sum(isinstance(atom.ty, f.Arr) for atom in body.results):
        return body, []
    if any(atom in gone for bind in body.binds for atom in used(f.Block((bind,), ()))):
        return body, []
    return f.Block(tuple([b for b in body.binds if b.vars[:1] not in [(v,) for v in gone]]), body.results), [
        row for row in found if row is not None
    ]


def row_of(atom: f.Atom, made: dict[f.Var, f.Op]) -> Row | None:
    if not isinstance(atom.ty, f.Arr):
        return Row(atom.ty, (atom,), ())
    op = made.get(atom) if isinstance(atom, f.Var) else None
    if op is None or not isinstance(op.args[0].ty, f.Num):
        return None
    return Row(op.args[0].ty, op.args, (len(op.args),))


def build(e: BodyEmitter, outer: f.Build, variables: tuple[f.Var, ...]) -> Values:
    levels = nest(outer)
    counts = _counts(e, levels)
    results = levels[-1].build.body.results
    site = e.site(outer.span)
    body, pieces = rows(levels[-1].build.body)
    if pieces:
        levels[-1] = replace(levels[-1], before=body.binds)
        made = [arrays.new_outer(e, row.elem, counts[0], [*counts[1:], *row.dims], site) for row in pieces]
        fresh = [array.data for array in made]
        _fill(e, levels, counts, [], lambda number, _: _put(e, pieces, made, number), fresh=fresh)
        shapes = [_shape(e, levels, counts, k, row.dims) for k, row in enumerate(pieces)]
        return [leaf for a, dims in zip(made, shapes, strict=True) for leaf in (a.owner, a.data, *dims)]

    def place(number: str, made: Values) -> Values:
        return _place_rows(e, results, counts, made, number, outer.span)

    types = leaves(f.Tup(tuple(var.ty for var in variables)))
    last = _fill(e, levels, counts, [leaf for var in variables for leaf in zeros(var.ty)], place, types)
    some = e.w.let(f"icmp sgt i64 {e.w.product(counts)}, 0")
    return e.w.choose(some, types, lambda: last, lambda: _empty(e, levels, variables, counts))


def _counts(e: BodyEmitter, levels: list[Level]) -> list[str]:
    """The lengths of the loops.  That of an inner loop is checked only if the outer loop has steps."""
    w = e.w
    first = e.one(levels[0].build.count)
    arrays.check_count(e, first, e.site(levels[0].build.span))
    counts = [first]
    for level in levels[1:]:
        count = e.one(level.build.count)
        if not count.isdigit():
            unseen = w.let(f"icmp eq i64 {counts[-1]}, 0")
            fine = w.let(f"or i1 {unseen}, {w.let(f'icmp sge i64 {count}, 0')}")
            e.require(fine, Failure.NEGATIVE, e.site(level.build.span), count)
            count = w.let(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        counts.append(count)
    return counts


def _fill(e: BodyEmitter, levels: list[Level], counts: list[str], inits: Values, leaf, types=(), fresh=()) -> Values:
    """Writes the nest; `leaf` writes an element, given its number and the state.  `fresh` are the addresses of the
    results' elements."""

    body = f.Block(levels[-1].before, ())
    short = interrupts.is_short(body) and not types

    def run(depth: int, number: str, state: Values) -> Values:
        level, count = levels[depth], counts[depth]

        def step(i: str, state: Values) -> Values:
            e.define((level.build.index,), [i])
            here = e.w.add(e.w.mul(number, count), i) if number != "0" else i
            e.run(level.before)
            state = leaf(here, state) if depth + 1 == len(levels) else run(depth + 1, here, state)
            e.run(level.after)
            return state

        calm = depth + 1 < len(levels) or short
        if depth == 0 and not types and (work := threads.pays(e, level.build.body, count)):
            points = threads.Points(count, work, lambda i: step(i, []), calm, fresh)
            threads.spread(e, level.build.body, points)
            return []
        return interrupts.count_to(e, count, step, types, state, short=calm)

    return run(0, "0", inits)


def _put(e: BodyEmitter, pieces: list[Row], made: list[Array], number: str) -> Values:
    for array, row in zip(made, pieces, strict=True):
        start = e.w.at(array.data, e.w.scale(number, array.size * len(row.items)))
        for i, atom in enumerate(row.items):
            e.put(array.elem, e.value(atom), e.w.at(start, str(i * array.size)) if i else start)
    return []


def _place_rows(
    e: BodyEmitter, results: tuple[f.Atom, ...], counts: list[str], made: Values, number: str, span: f.Span
) -> Values:
    """Copies the results of a step into the arrays, which the first step allocates."""
    rows = [_as_array(atom, e.value(atom)) for atom in results]
    ragged = e.site(span, "an array's rows must have one size: [{a}], [{b}]")
    types = [leaf for row in rows for leaf in ("ptr", "ptr", *("i64",) * (len(counts) + len(row.dims)))]

    def allocate() -> Values:
        fresh = [arrays.new_checked(e, row.elem, [*counts, *row.dims]) for row in rows]
        return [leaf for array in fresh for leaf in array.values]

    first = e.w.let(f"icmp eq i64 {number}, 0")
    state = after = e.w.choose(first, types, allocate, lambda: made)
    for row, atom in zip(rows, results, strict=True):
        inner = state[2 + len(counts) : 2 + len(counts) + len(row.dims)]
        to = e.w.at(state[1], e.w.mul(number, e.w.scale(e.w.product(inner), row.size)))
        if isinstance(atom.ty, f.Arr):
            arrays.check_shape(e, inner, row.dims, ragged)
            arrays.copy_elements(e, row.elem, to, row.data, e.w.product(row.dims))
            e.drop(atom.ty, e.value(atom))
        else:
            e.put(atom.ty, e.value(atom), to)
        state = state[2 + len(counts) + len(row.dims) :]
    return after


def _as_array(atom: f.Atom, values: Values) -> Array:
    """A result as a row; a scalar is a row without dimensions and without data."""
    return arrays.array_of(atom.ty, values) if isinstance(atom.ty, f.Arr) else Array(atom.ty, "null", "null", ())


def _empty(e: BodyEmitter, levels: list[Level], variables: tuple[f.Var, ...], counts: list[str]) -> Values:
    """Arrays without elements."""
    unknown = [["0"] * (rank_of(var.ty) - len(counts)) for var in variables]
    made = [arrays.new_block(e, expect_type(f.Arr, var.ty).elem, "0", _shape(e, levels, counts, k, unknown[k]))
            for k, var in enumerate(variables)]  # fmt: skip
    return [leaf for array in made for leaf in array.values]


def _shape(e: BodyEmitter, levels: list[Level], counts: list[str], k: int, row: list[str]) -> list[str]:
    """The dimensions of the result `k`: the counts of the loops, and those of a row.  Inside of a loop without steps,
    dimensions are those that its Build tells, or 0."""
    dims, inmost = list(row), True
    for level, count in reversed(list(zip(levels, counts, strict=True))):
        told = [e.one(n) for n in level.build.inner[k]] if level.build.inner else []
        told, inmost = told or ["0"] * (len(row) if inmost else 0), False
        none = None
        for i, (own, other) in enumerate(zip(dims, told, strict=False)):
            if own != other:
                none = none or e.w.let(f"icmp eq i64 {count}, 0")
                dims[i] = e.w.let(f"select i1 {none}, i64 {other}, i64 {own}")
        dims = [count, *dims]
    return dims
