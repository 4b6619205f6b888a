"""Elementwise operations on arrays -> loops over contiguous data.

    z = map (x, w) { t = mul x w; u = exp t; yield u }      x : f64[n, m], w : f64[m]

    for i < n { for j < m { z[i*m + j] = exp (x[i*m + j] * w[j]) } }

Operands of lower rank are lifted.  The loops are split where such an operand begins, so that in the innermost loop
every operand either advances or stands still.  A result overwrites an operand that is unique, if their elements have
one size.  Steps of the innermost loop are independent, and LLVM is told so, to vectorise it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.machine.emit import arrays, interrupts, threads
from dplc.machine.emit.arrays import Array
from dplc.machine.emit.body import BodyEmitter
from dplc.machine.emit.emitter import ACCESS
from dplc.machine.emit.layout import struct
from dplc.machine.emit.scalars import scalar, scalar_type
from dplc.machine.llvm.types import SCALARS, memory_type
from dplc.machine.llvm.writer import Values
from dplc.narrow import expect_type
from dplc.passes.kernels import work

STRICT = 32  # fewer elements are added in sequence
LANES = 8  # more elements are added in so many partial sums


def single(e: BodyEmitter, op: f.Op, variables: tuple[f.Var, ...]) -> Values:
    """A single operation, as a Map of its own."""
    params = tuple(f.Var(f"{variables[0].name}.{i}", f.Num(scalar_type(x.ty))) for i, x in enumerate(op.args))
    result = f.Var(f"{variables[0].name}.x", f.Num(scalar_type(variables[0].ty)))
    body = f.Block((f.Bind((result,), f.Op(op.op, params, op.attrs, op.span)),), (result,))
    return fused(e, f.Map(params, op.args, body, (rank_of(variables[0].ty),), op.span), variables)


@node
class Plan:
    """The loops.  `ranks` are those of the operands, highest first, without 0; loop k runs over the dimensions from
    `ranks[k]` to `ranks[k + 1]`."""

    ranks: tuple[int, ...]
    dims: tuple[str, ...]  # of the operands of highest rank

    def lengths(self, e: BodyEmitter) -> list[str]:
        """The number of steps of each loop."""
        top, ends = self.ranks[0], (*self.ranks[1:], 0)
        return [e.w.product(self.dims[top - a : top - b]) for a, b in zip(self.ranks, ends, strict=True)]


def fused(e: BodyEmitter, fused: f.Map, variables: tuple[f.Var, ...]) -> Values:
    inputs = {
        param.name: arrays.array_of(atom.ty, e.value(atom))
        for param, atom in zip(fused.params, fused.inputs, strict=True)
        if isinstance(atom.ty, f.Arr)
    }
    for param, atom in zip(fused.params, fused.inputs, strict=True):
        if param.name not in inputs:
            e.define((param,), e.value(atom))
    highest = max(inputs.values(), key=lambda a: len(a.dims))
    ranks = {len(a.dims) for a in inputs.values()} | {rank for rank in fused.ranks if rank}
    plan = Plan(tuple(sorted(ranks, reverse=True)), highest.dims)
    for a in inputs.values():
        if a is not highest:
            arrays.check_shape(e, highest.dims[len(highest.dims) - len(a.dims) :], a.dims, e.site(fused.span))
    outputs = _outputs(e, fused, plan, inputs)
    sums = [i for i, out in enumerate(outputs) if out is None]
    totals = _run(e, fused, plan, inputs, outputs, sums)
    kept = {a.owner for a in outputs if a}
    for a in inputs.values():
        _release(e, a, kept)
    values: Values = []
    for i, out in enumerate(outputs):
        values += out.values if out else [totals[sums.index(i)]]
    return values


# ---- where results go


def _outputs(e: BodyEmitter, fused: f.Map, plan: Plan, inputs: dict[str, Array]) -> list[Array | None]:
    """The arrays to write: for full results, an operand to overwrite or a new array; for sums, zeros to add to; None
    for a sum that is a scalar."""
    whole = [i for i, rank in enumerate(fused.ranks) if rank == plan.ranks[0]]
    free = [a for a in inputs.values() if len(a.dims) == plan.ranks[0]]
    outputs: list[Array | None] = []
    for i, (atom, rank) in enumerate(zip(fused.body.results, fused.ranks, strict=True)):
        if i in whole:
            share = free if i == whole[-1] else free[:1]
            fitting = [a for a in share if a.size == struct(atom.ty).size]
            free = [a for a in free if a not in fitting]
            outputs.append(_reused(e, atom.ty, fitting, plan.dims))
        else:
            inner = plan.dims[len(plan.dims) - rank :]
            outputs.append(arrays.zero_array(e, atom.ty, inner) if rank else None)
    return outputs


def _reused(e: BodyEmitter, elem: f.Type, candidates: list[Array], dims: tuple[str, ...]) -> Array:
    """The first of the candidates that is unique, or a new array."""
    if not candidates:
        return arrays.new_array(e, elem, dims)
    first, *others = candidates

    def other() -> Values:
        return _reused(e, elem, others, dims).values[:2]

    owner, data = e.w.choose(e.unique(first.owner), ("ptr", "ptr"), lambda: [first.owner, first.data], other)
    return Array(elem, owner, data, dims)


def _release(e: BodyEmitter, a: Array, kept: set[str]) -> None:
    """Drops an input, unless a result overwrites it."""
    owner = a.owner
    for out in sorted(kept):
        owner = e.w.let(f"select i1 {e.w.let(f'icmp eq ptr {a.owner}, {out}')}, ptr null, ptr {owner}")
    e.drop(a.type, [owner, *a.values[1:]])


# ---- the loops


def _run(
    e: BodyEmitter,
    fused: f.Map,
    plan: Plan,
    inputs: dict[str, Array],
    outputs: list[Array | None],
    sums: list[int],
) -> Values:
    """Writes the outputs; the values of the scalar sums."""
    results = fused.body.results
    types = [SCALARS[scalar_type(results[i].ty)] for i in sums]
    zeros = [e.value(f.Const(0, results[i].ty))[0] for i in sums]

    def element(places: Callable[[Array], str], totals: Values) -> Values:
        return _element(e, fused, inputs, outputs, places, totals)

    alone = not sums and all(rank == plan.ranks[0] for rank in fused.ranks)
    apart = fused.body if alone and not any(_fails(bind) for bind in fused.body.binds) else None
    lanes = LANES if any(f.is_float(results[i].ty) for i in sums) else 1
    totals = _nest(e, plan, [*inputs.values(), *(a for a in outputs if a)], element, lanes, types, zeros, apart)
    while len(totals) > len(types):  # adds the upper half of the lanes to the lower half
        half = len(totals) // 2
        pairs = zip(types * (half // len(types)), totals[:half], totals[half:], strict=True)
        totals = [e.w.let(f"{_plus(ty)} {ty} {low}, {high}") for ty, low, high in pairs]
    return totals


def _fails(bind: f.Bind) -> bool:
    """True for a division that may fail: what it overwrites could not be computed again."""
    return OPS[expect_type(f.Op, bind.rhs).op].fails is Fails.ZERO


def _plus(leaf: str) -> str:
    return "add" if leaf[0] == "i" else "fadd"


def _nest(
    e: BodyEmitter, plan: Plan, operands: list[Array], element, lanes: int, types: list[str], inits: Values,
    apart: f.Block | None,
) -> Values:  # fmt: skip
    """Runs `element(place of each array's element, totals)` for all elements.  With several lanes each sum has as many
    totals, and element i is added to that of lane i modulo their number.  This order can be vectorised, and is the same
    on every machine.  The elements left over at the end of a row are added to the first lane; so are all elements if
    they are few.  `apart` is the body if threads may share the outermost loop."""
    w, lengths, sums = e.w, plan.lengths(e), len(types)
    few = w.let(f"icmp ult i64 {w.product(plan.dims)}, {STRICT}") if lanes > 1 else ""
    innermost = len(lengths) - 1

    def run(depth: int, numbers: dict[int, str], totals: Values) -> Values:
        """`numbers`: for each rank, the number of rows that the loops outside of `depth` have passed in its arrays."""
        length = lengths[depth]
        starts = {rank: w.mul(number, length) if number != "0" else "0" for rank, number in numbers.items()}
        starts[plan.ranks[depth]] = "0"
        if depth < innermost:

            def rows(i: str, totals: Values) -> Values:
                here = {rank: w.add(start, i) for rank, start in starts.items()}
                return run(depth + 1, here, totals)

            if depth == 0 and apart:
                return _outermost(e, apart, length, lengths[1:], rows)
            return w.count_to(length, rows, types * lanes, totals)
        bases = {id(a): w.at(a.data, w.scale(starts[len(a.dims)], a.size)) for a in operands}

        def step(i: str, totals: Values) -> Values:
            def place(a: Array) -> str:
                leaf = memory_type(SCALARS[a.number.name])
                return w.let(f"getelementptr inbounds {leaf}, ptr {bases[id(a)]}, i64 {i}")

            return element(place, totals)

        if depth == 0 and apart:
            return _outermost(e, apart, length, [], step, e.unit.parallel())
        if lanes == 1:
            return interrupts.count_to(e, length, step, types, totals, e.unit.parallel())

        def chunk(number: str, totals: Values) -> Values:
            start, after = w.mul(number, str(lanes)), []
            for lane in range(lanes):
                after += step(w.add(start, str(lane)), totals[lane * sums : (lane + 1) * sums])
            return after

        chunks = w.let(f"select i1 {few}, i64 0, i64 {w.let(f'udiv i64 {length}, {lanes}')}")
        totals = interrupts.count_to(e, chunks, chunk, types * lanes, totals, e.unit.parallel())
        done = w.mul(chunks, str(lanes))
        left = w.let(f"sub i64 {length}, {done}")
        first = w.count_to(left, lambda i, t: step(w.add(done, i), t), types, totals[:sums])
        return [*first, *totals[sums:]]

    return run(0, {}, inits * lanes)


def _outermost(e: BodyEmitter, body: f.Block, length: str, inner: list[str], step, mark: str = "") -> Values:
    """The outermost loop, without sums: threads share it if that may pay."""
    if (each := threads.pays(e, body, length)) is None:
        return interrupts.count_to(e, length, step, mark=mark)
    each = functools.reduce(work.times, [{(n,): 1.0} for n in inner], each)
    threads.spread(e, body, threads.Points(length, each, lambda i: step(i, []), True, (), mark))
    return []


def _element(
    e: BodyEmitter,
    fused: f.Map,
    inputs: dict[str, Array],
    outputs: list[Array | None],
    place: Callable[[Array], str],
    totals: Values,
) -> Values:
    """One step: loads, operations, stores; the new totals."""
    w = e.w
    for param in fused.params:
        if a := inputs.get(param.name):
            e.define((param,), [w.load(SCALARS[a.number.name], place(a), ACCESS)])
    for bind in fused.body.binds:
        op = expect_type(f.Op, bind.rhs)
        e.define(bind.vars, [scalar(e, op, [e.one(atom) for atom in op.args])])
    after, sums = [], iter(totals)
    top = max(len(a.dims) for a in inputs.values())
    for atom, rank, out in zip(fused.body.results, fused.ranks, outputs, strict=True):
        leaf, value = SCALARS[scalar_type(atom.ty)], e.one(atom)
        plus = f"{_plus(leaf)} {leaf}"
        if out is None:
            after.append(w.let(f"{plus} {next(sums)}, {value}"))
        elif rank == top:
            w.store(leaf, value, place(out), ACCESS)
        else:
            at = place(out)
            w.store(leaf, w.let(f"{plus} {w.load(leaf, at, ACCESS)}, {value}"), at, ACCESS)
    return after
