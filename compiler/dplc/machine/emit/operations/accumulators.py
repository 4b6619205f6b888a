"""Accumulators of cotangents -> LLVM text; null is a zero of any shape.

b = acc_index a v n i      a[i] += v, in place; into n fresh zeros if a is null, into a copy if a is shared
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.emitter import Emitter
from dplc.machine.emit.module.layout import leaves
from dplc.machine.emit.operations.array_ops import operand, scalars
from dplc.machine.emit.scalars.operations import scalar_type
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure


def is_null(e: BodyEmitter, op: f.Op) -> Values:
    """Tests whether an array or constructor is null; numbers and tuples never are."""
    values = e.value(op.args[0])
    match op.args[0].ty:
        case f.Arr():
            return [e.w.let(f"icmp eq ptr {values[1]}, null")]
        case f.Data():
            return [e.w.let(f"icmp eq ptr {values[0]}, null")]
        case _:
            return ["false"]


def acc_add(e: BodyEmitter, op: f.Op) -> Values:
    a, b = op.args
    if isinstance(a.ty, f.Num):
        return [e.w.let(f"fadd {SCALARS[a.ty.name]} {e.one(a)}, {e.one(b)}")]
    types, site = leaves(a.ty), e.site(op.span)
    args = [*e.value(a), *e.value(b), str(site)]

    def body(inner: Emitter, values: Values) -> Values:
        one, other = arrays.array_of(a.ty, values[: len(types)]), arrays.array_of(a.ty, values[len(types) : -1])
        return _add(inner, one, other, values[-1])

    return e.outlined(f"acc_add {scalar_type(a.ty)} {rank_of(a.ty)}", (*types, *types, "i64"), args, types, body)


def _add(e: Emitter, a: Array, b: Array, site: str) -> Values:
    """The sum, in place in the first of the two arrays that is unique, or in a copy."""
    w, types = e.w, leaves(a.type)

    def into(x: Array, y: Array) -> Values:
        arrays.add_into(e, x.number, x.data, y.data, w.product(x.dims))
        e.drop(y.type, y.values)
        return x.values

    def sum_() -> Values:
        arrays.check_shape(e, a.dims, b.dims, site)
        if e.unit.device is not None:
            for x in (a, b):
                w.do(f"call void @rt.device_home(ptr {x.owner})")
        return w.choose(
            e.unique(a.owner),
            types,
            lambda: into(a, b),
            lambda: w.choose(e.unique(b.owner), types, lambda: into(b, a), lambda: into(arrays.writable(e, a), b)),
        )

    def right() -> Values:
        return w.choose(w.let(f"icmp eq ptr {b.data}, null"), types, lambda: a.values, sum_)

    return w.choose(w.let(f"icmp eq ptr {a.data}, null"), types, lambda: b.values, right)


def acc_zeros(e: BodyEmitter, op: f.Op) -> Values:
    if e.is_ready(op.args[0]):
        return e.value(op.args[0])
    return arrays.present(e, operand(e, op.args[0]), scalars(e, op.args[1:])).values


def acc_extend(e: BodyEmitter, op: f.Op) -> Values:
    """The array itself if it is long enough, else a longer one."""
    a, length = operand(e, op.args[0]), e.one(op.args[1])
    if a.dims[0] == length:
        return a.values
    types = leaves(a.type)

    def body(inner: Emitter, values: Values) -> Values:
        old, fresh = arrays.array_of(a.type, values[:-1]), arrays.zero_array(inner, a.elem, [values[-1]])
        arrays.copy_elements(inner, a.elem, fresh.data, old.data, old.dims[0])
        inner.drop(old.type, old.values)
        return fresh.values

    def longer() -> Values:
        return e.outlined(f"longer {scalar_type(a.type)}", (*types, "i64"), [*a.values, length], types, body)

    return e.w.choose(e.w.let(f"icmp eq i64 {a.dims[0]}, {length}"), types, lambda: a.values, longer)


def acc_index(e: BodyEmitter, op: f.Op) -> Values:
    """Adds to an element or sub-array.  The forward pass has checked the indices."""
    rank, addend = op.attr("rank"), op.args[1]
    dims, indices = scalars(e, op.args[2 : 2 + rank]), scalars(e, op.args[2 + rank :])
    if isinstance(addend.ty, f.Arr):
        return _add_part(e, op, operand(e, addend), dims, lambda full: arrays.address(e, full, indices))
    a = _ready(e, op, dims)
    leaf, place = SCALARS[a.number.name], arrays.address(e, a, indices)
    mark = e.separate.get(op.args[0].name, "") if isinstance(op.args[0], f.Var) else ""

    def add() -> None:
        e.w.store(leaf, e.w.let(f"fadd {leaf} {e.w.load(leaf, place, mark)}, {e.one(addend)}"), place, mark)

    e.once(a.elem, add)
    return a.values


def acc_slice(e: BodyEmitter, op: f.Op) -> Values:
    """Adds rows.  Rows that are added to null become the accumulator, with zeros around them."""
    rank, w = op.attr("rank"), e.w
    dims, lo = scalars(e, op.args[2 : 2 + rank]), e.one(op.args[2 + rank])
    a, part = (operand(e, atom) for atom in op.args[:2])

    def padded() -> Values:
        width = str(part.size)
        whole, size, before = (w.mul(w.product(ns), width) for ns in (dims, part.dims, [lo, *dims[1:]]))
        sizes = f"i64 {whole}, i64 {size}, i64 {before}"
        made = w.let(f"call {{ ptr, ptr }} @rt.padded(ptr {part.owner}, ptr {part.data}, {sizes})")
        return [*(w.let(f"extractvalue {{ ptr, ptr }} {made}, {k}") for k in (0, 1)), *dims]

    def added() -> Values:
        sum_ = _add_part(e, op, part, dims, lambda full: arrays.address(e, full, [lo]))
        e.drop(part.type, part.values)
        return sum_

    there = w.let(f"icmp ne ptr {part.data}, null")
    alone = w.let(f"and i1 {there}, {w.let(f'icmp eq ptr {a.data}, null')}")
    return w.choose(alone, leaves(a.type), padded, added)


def _ready(e: BodyEmitter, op: f.Op, dims: list[str]) -> Array:
    """The accumulator, unique and not null; a loop may have made it so."""
    a = operand(e, op.args[0])
    return a if e.is_ready(op.args[0]) else arrays.writable(e, arrays.present(e, a, dims))


def _add_part(e: BodyEmitter, op: f.Op, part: Array, dims: list[str], address) -> Values:
    """Adds `part` to its place in the accumulator.  `part` may be null, or have no elements."""
    a, w = operand(e, op.args[0]), e.w

    def add() -> Values:
        full, count = _ready(e, op, dims), w.product(part.dims)
        inner = part.dims if op.op == "acc_index" else part.dims[1:]
        for n, other in zip(dims[len(dims) - len(inner) :], inner, strict=True):
            if n != other:
                same, none = w.let(f"icmp eq i64 {n}, {other}"), w.let(f"icmp eq i64 {count}, 0")
                e.require(w.let(f"or i1 {same}, {none}"), Failure.SHAPE, e.site(op.span), n, other)
        arrays.add_into(e, a.number, address(full), part.data, count)
        return full.values

    nothing = e.w.let(f"icmp eq ptr {part.data}, null")
    return e.w.choose(nothing, leaves(a.type), lambda: a.values, add)


OPS = {
    "is_null": is_null, "acc_add": acc_add, "acc_zeros": acc_zeros, "acc_extend": acc_extend,
    "acc_index": acc_index, "acc_slice": acc_slice,
}  # fmt: skip
