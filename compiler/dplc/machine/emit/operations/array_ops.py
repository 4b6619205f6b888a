"""Operations on arrays, except elementwise ones -> LLVM text."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.masked import masked
from dplc.flat.ops.arrays import DIFFERENT, RAGGED, UNEQUAL, UNFIT
from dplc.flat.show import show_type
from dplc.flat.types import rank_of
from dplc.machine.emit.bodies import arrays
from dplc.machine.emit.bodies.arrays import Array
from dplc.machine.emit.bodies.body import BodyEmitter
from dplc.machine.emit.module.constants import are_constant, elements, fields
from dplc.machine.emit.module.emitter import Emitter, zeros
from dplc.machine.emit.module.layout import counted, leaves
from dplc.machine.emit.points.sums import RowSums
from dplc.machine.failure.failures import bounds_word
from dplc.machine.llvm.types import SCALARS
from dplc.machine.llvm.writer import Values
from dplc.machine.runtime.failure_codes import Failure


def operand(e: BodyEmitter, atom: f.Atom) -> Array:
    """An operand that is an array, in registers."""
    return arrays.array_of(atom.ty, e.value(atom))


def scalars(e: BodyEmitter, atoms: tuple[f.Atom, ...]) -> list[str]:
    """The registers of operands that are numbers."""
    return [e.one(atom) for atom in atoms]


def dim(e: BodyEmitter, op: f.Op) -> Values:
    return [operand(e, op.args[0]).dims[op.attr("k", 0)]]


def index(e: BodyEmitter, op: f.Op) -> Values:
    a, indices = operand(e, op.args[0]), scalars(e, op.args[1:])
    _check_indices(e, op, a, indices)
    if len(indices) < len(a.dims):
        row = arrays.sub_array(e, a, indices)
        if e.lent:
            return ["null", *row.values[1:]]
        e.dup(row.type, row.values)
        return row.values
    element = e.get(a.elem, arrays.address(e, a, indices), e.read_access(op.args[0]))
    e.dup(a.elem, element)
    return element


def _check_indices(e: BodyEmitter, op: f.Op, a: Array, indices: list[str]) -> None:
    if not op.attr("unchecked"):
        doubtful = indices[: len(indices) - op.attr("sure", 0)]
        for after, i, length in zip(reversed(range(len(doubtful))), doubtful, a.dims, strict=False):
            arrays.check_index(e, i, length, e.site(op.span, bounds_word(Failure.INDEX, after)))


def update(e: BodyEmitter, op: f.Op) -> Values:
    a, value, indices = operand(e, op.args[0]), op.args[1], scalars(e, op.args[2:])
    _check_indices(e, op, a, indices)
    if not e.is_ready(op.args[0]):
        a = arrays.writable(e, a)
    if len(indices) == len(a.dims):
        place = arrays.address(e, a, indices)
        old = e.get(a.elem, place)
        e.once(a.elem, lambda: e.put(a.elem, e.value(value), place))
        e.drop(a.elem, old)
        return a.values
    row, new = arrays.sub_array(e, a, indices), operand(e, value)
    arrays.check_shape(e, row.dims, new.dims, e.site(op.span, "sizes [{a}] and [{b}] differ: a row keeps its size"))
    count = e.w.product(row.dims)
    arrays.drop_elements(e, a.elem, row.data, count)
    arrays.copy_elements(e, a.elem, row.data, new.data, count)
    e.drop(new.type, new.values)
    return a.values


def slice_(e: BodyEmitter, op: f.Op) -> Values:
    a, (lo, hi) = operand(e, op.args[0]), scalars(e, op.args[1:])
    w = e.w
    if not op.attr("unchecked"):
        ordered = w.let(f"icmp ule i64 {lo}, {hi}")  # unsigned, so that a negative `lo` fails, too
        inside = w.let(f"icmp ule i64 {hi}, {a.dims[0]}")
        third = w.let(f"sub i64 0, {a.dims[0]}")
        good = w.let(f"and i1 {ordered}, {inside}")
        w.unless_cold(
            good, lambda: e.fail(Failure.SLICE, e.site(op.span, bounds_word(Failure.SLICE)), lo, hi, size=third)
        )
    view = arrays.sub_array(e, a, [lo])
    e.dup(a.type, a.values)
    return [view.owner, view.data, w.sub(hi, lo), *a.dims[1:]]


def concat(e: BodyEmitter, op: f.Op) -> Values:
    """The inner lengths must agree, except with an operand without rows: its inner lengths may be a guess of 0."""
    a, b = (operand(e, atom) for atom in op.args)
    w, site = e.w, e.site(op.span, UNEQUAL)
    inner = list(a.dims[1:])
    if inner:
        none = [w.let(f"icmp eq i64 {x.dims[0]}, 0") for x in (a, b)]
        either = w.let(f"or i1 {none[0]}, {none[1]}")
        for k, (p, q) in enumerate(zip(a.dims[1:], b.dims[1:], strict=True)):
            same = w.let(f"icmp eq i64 {p}, {q}")
            e.require(w.let(f"or i1 {either}, {same}"), Failure.SHAPE, site, p, q)
            most = w.let(f"call i64 @llvm.umax.i64(i64 {p}, i64 {q})")
            right = w.let(f"select i1 {none[1]}, i64 {most}, i64 {q}")
            inner[k] = w.let(f"select i1 {none[0]}, i64 {right}, i64 {p}")
    counts = [w.product(x.dims) for x in (a, b)]
    if not counted(a.elem):
        return [*_append(e, a, b, counts), w.add(a.dims[0], b.dims[0]), *inner]
    fresh = arrays.new_array(e, a.elem, [w.add(a.dims[0], b.dims[0]), *inner])
    arrays.copy_elements(e, a.elem, fresh.data, a.data, counts[0])
    arrays.copy_elements(e, a.elem, w.at(fresh.data, w.mul(counts[0], str(a.size))), b.data, counts[1])
    for x in (a, b):
        e.drop(x.type, x.values)
    return fresh.values


def _append(e: BodyEmitter, a: Array, b: Array, counts: list[str]) -> Values:
    """Owner and data of the elements of both, as bytes: in place, if one is unique and has room."""
    parts = [f"ptr {x.owner}, ptr {x.data}, i64 {e.w.scale(n, x.size)}" for x, n in zip((a, b), counts, strict=True)]
    made = e.w.let(f"call {{ ptr, ptr, i64 }} @rt.str_append({', '.join(parts)})")
    return [e.w.let(f"extractvalue {{ ptr, ptr, i64 }} {made}, {k}") for k in (0, 1)]


def reshape(e: BodyEmitter, op: f.Op) -> Values:
    a, dims = operand(e, op.args[0]), scalars(e, op.args[1:])
    if not op.attr("unchecked") and sorted(n for n in a.dims if n != "1") != sorted(n for n in dims if n != "1"):
        sites = [str(e.site(op.span)), str(e.site(op.span, "cannot reshape: {a} elements are not {b}"))]
        old, new = len(a.dims), len(dims)

        def check(inner: Emitter, values: Values) -> Values:
            for n in values[old:-2]:
                arrays.check_count(inner, n, values[-2])
            size = [arrays.checked_size(inner, values[old:-2])]
            arrays.check_shape(inner, [inner.w.product(values[:old])], size, values[-1])
            return []

        e.outlined(f"reshape {old} {new}", ["i64"] * (old + new + 2), [*a.dims, *dims, *sites], (), check, inline=True)
    return [a.owner, a.data, *dims]


def copy(e: BodyEmitter, op: f.Op) -> Values:
    a = operand(e, op.args[0])
    fresh = arrays.new_array(e, a.elem, a.dims)
    arrays.copy_elements(e, a.elem, fresh.data, a.data, e.w.product(a.dims))
    return fresh.values


def transpose(e: BodyEmitter, op: f.Op) -> Values:
    a = operand(e, op.args[0])
    rows, columns, *rest = a.dims
    fresh = arrays.new_array(e, a.elem, [columns, rows, *rest])
    where = f"ptr {fresh.data}, ptr {a.data}, i64 {rows}, i64 {columns}"
    if not rest and a.size in (1, 2, 4, 8):
        e.w.do(f"call void @rt.transpose.{a.size}({where})")
    else:
        e.w.do(f"call void @rt.transpose.n({where}, i64 {e.w.mul(e.w.product(rest), str(a.size))})")
    arrays.dup_elements(e, a.elem, fresh.data, e.w.product(fresh.dims))
    return fresh.values


def fill(e: BodyEmitter, op: f.Op) -> Values:
    count, x = e.one(op.args[0]), op.args[1]
    values, site = e.value(x), e.site(op.span)
    if isinstance(x.ty, f.Arr):
        row = arrays.array_of(x.ty, values)
        fresh = arrays.new_outer(e, row.elem, count, row.dims, site)
        inner = e.w.product(row.dims)
        step = e.w.scale(inner, row.size)

        def put_row(i: str) -> None:
            arrays.copy_elements(e, row.elem, e.w.at(fresh.data, e.w.mul(i, step)), row.data, inner)

        e.w.repeat(count, put_row)
    else:
        fresh = arrays.new_outer(e, x.ty, count, (), site)

        def put(i: str) -> None:
            e.dup(x.ty, values)
            e.put(x.ty, values, e.w.element(fresh.data, i, fresh.size))

        e.each(x.ty, count, put)
    e.drop(x.ty, values)
    return fresh.values


def iota(e: BodyEmitter, op: f.Op) -> Values:
    count = e.one(op.args[0])
    fresh = arrays.new_outer(e, f.I64, count, (), e.site(op.span))
    e.each(f.I64, count, lambda i: e.put(f.I64, [i], e.w.element(fresh.data, i, 8)))
    return fresh.values


def array(e: BodyEmitter, op: f.Op) -> Values:
    first = op.args[0].ty
    if (constant := _constant_array(e, op.args)) is not None:
        return constant
    if not isinstance(first, f.Arr):
        fresh = arrays.new_array(e, first, [str(len(op.args))])

        def put() -> None:
            for i, x in enumerate(op.args):
                e.dup(first, e.value(x))
                e.put(first, e.value(x), e.w.at(fresh.data, i * fresh.size))

        e.once(first, put)
        return fresh.values
    rows = [operand(e, x) for x in op.args]
    site = e.site(op.span, RAGGED)
    for row in rows[1:]:
        arrays.check_shape(e, rows[0].dims, row.dims, site)
    fresh = arrays.new_array(e, rows[0].elem, [str(len(rows)), *rows[0].dims])
    count = e.w.product(rows[0].dims)
    step = e.w.scale(count, fresh.size)
    for i, row in enumerate(rows):
        place = e.w.at(fresh.data, e.w.mul(str(i), step)) if i else fresh.data
        arrays.copy_elements(e, row.elem, place, row.data, count)
    return fresh.values


def _constant_array(e: BodyEmitter, items: tuple[f.Atom, ...]) -> Values | None:
    """A constant array, if all items are constant.  Rows must have one size, and be whole constants themselves."""
    values, first = [e.value(x) for x in items], items[0].ty
    if not all(map(are_constant, values)):
        return None
    if not isinstance(first, f.Arr):
        return ["null", e.unit.elements(fields(first, values[0])[0], elements(first, values)), str(len(items))]
    dims = values[0][2:]
    rows = [row for _, data, *sizes in values if sizes == dims and (row := e.unit.arrays.get(data))]
    if len(rows) < len(items) or any(len(row) != math.prod(map(int, dims)) for _, row in rows):
        return None
    whole = [item for _, row in rows for item in row]
    return ["null", e.unit.elements(rows[0][0], whole), str(len(items)), *dims]


# ---- sums and products


def sum_(e: BodyEmitter, op: f.Op) -> Values:
    return _sum_down(e, operand(e, op.args[0]), rank_of(op.args[0].ty) - 1)


def sum_to(e: BodyEmitter, op: f.Op) -> Values:
    """The sum over the leading dimensions; that of null is null, or the number zero."""
    ty, rank = op.args[0].ty, op.attr("rank", 0)
    if not isinstance(ty, f.Arr) or ty.rank == rank:
        e.dup(ty, e.value(op.args[0]))
        return e.value(op.args[0])
    a = operand(e, op.args[0])
    result = f.Arr(a.elem, rank) if rank else a.elem
    none = e.w.let(f"icmp eq ptr {a.data}, null")
    return e.w.choose(none, leaves(result), lambda: zeros(result), lambda: _sum_down(e, a, rank))


def _sum_down(e: BodyEmitter, a: Array, rank: int) -> Values:
    """The sum over the leading dimensions, until `rank` are left."""
    w, cut = e.w, len(a.dims) - rank
    if rank == 0:
        name = a.number.name
        return [w.let(f"call {SCALARS[name]} @rt.sum.{name}(ptr {a.data}, i64 {w.product(a.dims)})")]
    outer, inner = w.product(a.dims[:cut]), w.product(a.dims[cut:])
    sums = RowSums(e, a.elem, a.dims[cut:], outer)
    step = w.scale(inner, a.size)

    def add_row(i: str) -> None:
        sums.start_row(i)
        arrays.add_into(e, a.number, sums.rows.data, w.at(a.data, w.mul(i, step)), inner)

    w.repeat(outer, add_row)
    return sums.result().values


def dot(e: BodyEmitter, op: f.Op) -> Values:
    a, b = (operand(e, atom) for atom in op.args)
    arrays.check_shape(e, a.dims, b.dims, e.site(op.span, DIFFERENT))
    name, zeros = a.number.name, masked(op)
    args = f"ptr {a.data}, ptr {b.data}, i64 {a.dims[0]}"
    call = f"@rt.masked_dot.{name}({args}, i64 {zeros})" if zeros else f"@rt.dot.{name}({args})"
    return [e.w.let(f"call {SCALARS[name]} {call}")]


def extremum(e: BodyEmitter, op: f.Op) -> Values:
    a = operand(e, op.args[0])
    return [e.w.let(f"call i64 @rt.{op.op}.{a.number.name}(ptr {a.data}, i64 {a.dims[0]})")]


def sort(e: BodyEmitter, op: f.Op) -> Values:
    """`sort` and `argsort`: a call of the runtime library, `rt/sort.rt`."""
    a = operand(e, op.args[0])
    fresh = arrays.new_array(e, a.elem if op.op == "sort" else f.I64, a.dims)
    kind = 0 if a.number.name[0] in "ub" else 2 if f.is_float(a.elem) else 1
    where = f"i64 {e.site(op.span)}, ptr {fresh.data}, ptr {a.data}, i64 {a.dims[0]}"
    e.w.do(f"call void @rt.{op.op}({where}, i64 {a.size}, i64 {kind})")
    return fresh.values


def by_device(e: BodyEmitter, op: f.Op, on_host: Callable[[], Values]) -> Values:
    """A product, by the device if there is one and it pays."""
    if e.unit.device is None:
        return on_host()
    from dplc.machine.emit.launches.products import product

    return product(e, op, on_host)


def matmul(e: BodyEmitter, op: f.Op) -> Values:
    def on_host() -> Values:
        return _multiply(e, op, operand(e, op.args[0]), operand(e, op.args[1]), arrays.new_checked, "false")

    return by_device(e, op, on_host)


def matmul_acc(e: BodyEmitter, op: f.Op) -> Values:
    if isinstance(op.args[0], f.Const):  # null: what is added to nothing need not be zeros before
        return matmul(e, replace(op, args=op.args[1:]))
    c, a, b = (operand(e, atom) for atom in op.args)
    ty, types = c.type, leaves(c.type)

    def ready(inner: Emitter, values: Values) -> Values:
        """The accumulator if it is there and unique, a copy if others own it, or zeros."""
        old, dims = arrays.array_of(ty, values[: len(types)]), values[len(types) : -1]

        def present() -> Values:
            arrays.check_shape(inner, old.dims, dims, values[-1])
            return arrays.writable(inner, old).values

        none = inner.w.let(f"icmp eq ptr {old.data}, null")
        return inner.w.choose(none, types, lambda: arrays.zero_array(inner, old.elem, dims).values, present)

    def into(_: BodyEmitter, elem: f.Type, dims: list[str]) -> Array:
        args = [*c.values, *dims, str(e.site(op.span))]
        return arrays.array_of(ty, e.outlined(f"ready {show_type(ty)}", [*types, *["i64"] * 3], args, types, ready))

    return by_device(e, op, lambda: _multiply(e, op, a, b, into, "true"))


def _multiply(e: BodyEmitter, op: f.Op, a: Array, b: Array, target, accumulate: str) -> Values:
    ta, tb = bool(op.attr("ta")), bool(op.attr("tb"))
    m, k = reversed(a.dims) if ta else a.dims
    also_k, n = reversed(b.dims) if tb else b.dims
    arrays.check_shape(e, [k], [also_k], e.site(op.span, UNFIT))
    c = target(e, a.elem, [m, n])
    flags = ", ".join(f"i1 {'true' if flag else 'false'}" for flag in (ta, tb))
    where = f"ptr {c.data}, ptr {a.data}, ptr {b.data}, i64 {m}, i64 {n}, i64 {k}"
    e.library(f"matmul.{a.number.name}", f"{where}, {flags}, i1 {accumulate}, i64 {masked(op)}")
    return c.values


# the results of LAPACK's routines: element type and dimensions; the last operand is an n x m matrix
LAPACK = {
    "lapack_lu": ((f.F64, "nn"), (f.I64, "n")),
    "lapack_cholesky": ((f.F64, "nn"),),
    "lapack_qr": ((f.F64, "nm"), (f.F64, "mm")),
    "lapack_eigh": ((f.F64, "n"), (f.F64, "nn")),
    "lapack_svd": ((f.F64, "nm"), (f.F64, "m"), (f.F64, "mm")),
    "lapack_triangular": ((f.F64, "nm"),),
}


def lapack(e: BodyEmitter, op: f.Op) -> Values:
    """A call of the runtime library: flags, addresses of the results, addresses of the operands, lengths."""
    flags = [f"i1 {e.one(atom)}" for atom in op.args if not isinstance(atom.ty, f.Arr)]
    matrices = [operand(e, atom) for atom in op.args if isinstance(atom.ty, f.Arr)]
    lengths: dict[str, str] = dict(zip("nm", matrices[-1].dims, strict=True))
    made = [arrays.new_array(e, elem, [lengths[k] for k in dims]) for elem, dims in LAPACK[op.op]]
    places = [f"ptr {a.data}" for a in (*made, *matrices)]
    e.w.do(f"call void @rt.{op.op}({', '.join([*flags, *places, *(f'i64 {n}' for n in lengths.values())])})")
    return [value for a in made for value in a.values]


def has_lapack(e: BodyEmitter, _op: f.Op) -> Values:
    return [e.w.let("call i1 @rt.has_lapack()")]


def same_shape(e: BodyEmitter, op: f.Op) -> Values:
    a, b = (operand(e, atom) for atom in op.args)
    arrays.check_shape(e, a.dims, b.dims, e.site(op.span, op.attr("what")), Failure.FORM)
    return []


def check_lengths(e: BodyEmitter, op: f.Op) -> Values:
    arrays.check_shape(e, [e.one(op.args[0])], [e.one(op.args[1])], e.site(op.span, op.attr("what", "")))
    return []


def check_index(e: BodyEmitter, op: f.Op) -> Values:
    i, length = scalars(e, op.args)
    arrays.check_index(e, i, length, e.site(op.span, bounds_word(Failure.INDEX, op.attr("after"))))
    return []


OPS = {
    "dim": dim, "index": index, "update": update, "slice": slice_, "concat": concat, "reshape": reshape,
    "copy": copy,
    "transpose": transpose, "fill": fill, "iota": iota, "array": array, "sum": sum_, "sum_to": sum_to, "dot": dot,
    "argmax": extremum, "argmin": extremum, "sort": sort, "argsort": sort,
    "matmul": matmul, "matmul_acc": matmul_acc, "same_shape": same_shape,
    "check_lengths": check_lengths, "check_index": check_index,
    "has_lapack": has_lapack, **dict.fromkeys(LAPACK, lapack),
}  # fmt: skip
