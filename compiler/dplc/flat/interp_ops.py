"""The operations of flat on the values of `interp`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from operator import add
from typing import Any

from dpl.diagnostics import Bug
from dpl.eval.values import strings
from dpl.node import field, node, record
from dpl.prims import TABLE, evaluation, sums
from dpl.prims.convolution import WANTED, shapes, terms

from dplc.flat import term as f
from dplc.flat.masked import masked
from dplc.flat.numbers import same_bits, wrap
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.narrow import expect_type


@node
class Array:
    shape: tuple[int, ...]
    items: list

    def sum_to(self, rank: int, ty: f.Type = f.F64) -> Any:
        """Sums over leading dimensions until `rank` are left; each addition gives a number of type `ty`."""
        size, total = math.prod(self.shape[len(self.shape) - rank :]), sums.column if rank else sums.total
        plus: Callable = add if elem_of(ty) == f.F64 else lambda a, b: wrap(a + b, ty)
        zeros = [type(one)(0) for one in self.items[:size]]
        totals = [total(plus, zero, self.items[i::size]) for i, zero in enumerate(zeros)] or [0.0] * size
        return Array(self.shape[len(self.shape) - rank :], totals) if rank else totals[0]


@node
class Cell:
    """A value of a Data type."""

    tag: int
    payload: object = None


class Failure(Exception):
    """A run-time error of the program."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@record
class Outside:
    output: list[str] = field(default_factory=list)
    buffer: list[str] = field(default_factory=list)
    ticks: int = 0
    states: dict[str, list] = field(default_factory=dict)

    def take(self) -> str:
        """Empties the buffer.  Returns its contents."""
        text = "".join(self.buffer)
        self.buffer.clear()
        return text

    def tick(self, more: int) -> None:
        self.ticks += more

    def state(self, name: str, ty: f.Type) -> list:
        """The cell of that name.  At first it holds zeros."""
        return self.states.setdefault(name, [zero_of(ty.elem) if isinstance(ty, f.Ref) else None])


# ---- scalars --------------------------------------------------------------------------------------------------------


def scalar_row(fn: Callable, args: Sequence) -> Any:
    """Applies a function of scalars elementwise.  Operands of lower rank are lifted over the leading dimensions.
    Raises Failure if the shapes do not agree."""
    arrays = [a for a in args if isinstance(a, Array)]
    if not arrays:
        return fn(*args)
    shape = max((a.shape for a in arrays), key=len)
    for a in arrays:
        if a.shape != shape[len(shape) - len(a.shape) :]:
            raise Failure("R0301", f"shapes {a.shape} and {shape} do not agree")
    size = math.prod(shape)
    columns = [a.items if isinstance(a, Array) else [a] for a in args]
    return Array(shape, [fn(*(c[i % len(c)] for c in columns)) for i in range(size)])


def scalar(op: f.Op, args: list, result: f.Type) -> object:
    """Evaluates a scalar row of the primitive table."""
    evaluate = evaluation(op.op, expect_type(f.Num, elem_of(result)).name)
    if OPS[op.op].fails is Fails.ZERO and any(x == 0 and isinstance(x, int) for x in flat_items(args[1])):
        raise Failure("R0601", "division by zero")
    return scalar_row(lambda *xs: wrap(evaluate(*xs), result), args)


def cast(op: f.Op, args: list, result: f.Type) -> object:
    conversion = TABLE.get(op.attr("to"))
    convert = conversion.eval if conversion and conversion.eval else bool
    return scalar_row(lambda x: wrap(convert(x), result), args)


def bitcast(op: f.Op, args: list, result: f.Type) -> object:
    return scalar_row(lambda x: same_bits(x, op.args[0].ty, result), args)


def flat_items(x: Any) -> list:
    return x.items if isinstance(x, Array) else [x]


# ---- arrays ---------------------------------------------------------------------------------------------------------


def stack(parts: list, ty: Any, inner: tuple[int, ...] = ()) -> Array:
    """The array (of type `ty`) whose elements are `parts`, which must have one shape.  `inner` are its inner sizes if
    there are no parts."""
    if ty.rank == 1 or not parts:
        return Array((len(parts), *(inner or [0] * (ty.rank - 1))), list(parts))
    if any(p.shape != parts[0].shape for p in parts):
        raise Failure("R0301", "inner arrays of different shapes")
    return Array((len(parts), *parts[0].shape), [x for p in parts for x in p.items])


def place(a: Array, indices: Sequence[int]) -> tuple[int, int]:
    """The offset of the sub-array at `indices`, and its size.  Raises Failure outside the bounds."""
    size, offset = math.prod(a.shape), 0
    for n, i in zip(a.shape, indices, strict=False):
        if not 0 <= i < n:
            raise Failure("R0701", f"index {i} is outside 0 .. {n - 1}")
        size //= n
        offset += i * size
    return offset, size


def index(a: Array, *indices: int) -> object:
    offset, size = place(a, indices)
    if len(indices) == len(a.shape):
        return a.items[offset]
    return Array(a.shape[len(indices) :], a.items[offset : offset + size])


def update(a: Array, v: object, *indices: int) -> Array:
    offset, size = place(a, indices)
    items = list(a.items)
    items[offset : offset + size] = flat_items(v) if len(indices) < len(a.shape) else [v]
    return Array(a.shape, items)


def slice_(a: Array, lo: int, hi: int) -> Array:
    if not 0 <= lo <= hi <= a.shape[0]:
        raise Failure("R0701", f"slice {lo}:{hi} of {a.shape[0]}")
    size = math.prod(a.shape[1:])
    return Array((hi - lo, *a.shape[1:]), a.items[lo * size : hi * size])


def concat(a: Array, b: Array) -> Array:
    if a.shape[1:] != b.shape[1:] and a.shape[0] and b.shape[0]:
        raise Failure("R0301", "inner shapes do not agree")
    known = [x.shape[1:] for x in (a, b) if x.shape[0]]
    inner = known[0] if known else map(max, a.shape[1:], b.shape[1:])
    return Array((a.shape[0] + b.shape[0], *inner), a.items + b.items)


def reshape(a: Array, *dims: int) -> Array:
    if math.prod(dims) != math.prod(a.shape):
        raise Failure("R0301", f"{a.shape} reshaped to {dims}")
    return Array(dims, a.items)


def transpose(a: Array) -> Array:
    n, m, *rest = a.shape
    size = math.prod(rest)
    rows = [a.items[(i * m + j) * size : (i * m + j + 1) * size] for j in range(m) for i in range(n)]
    return Array((m, n, *rest), [x for row in rows for x in row])


def fill(n: int, x: object) -> Array:
    if n < 0:
        raise Failure("R0702", f"negative size {n}")
    return Array((n, *x.shape), x.items * n) if isinstance(x, Array) else Array((n,), [x] * n)


def extremum(a: Array, beats: Callable[[Any, Any], bool]) -> int:
    best = 0
    for i, x in enumerate(a.items):
        if x != x:
            return i
        best = i if beats(x, a.items[best]) else best
    return best


def order(a: Array) -> Array:
    return Array(a.shape, sorted(range(len(a.items)), key=lambda i: (a.items[i] != a.items[i], a.items[i])))


def dot(op: f.Op, a: Array, b: Array) -> object:
    if a.shape != b.shape:
        raise Failure("R0301", "dot of different sizes")
    return inner_product(a.items, b.items, masked(op), sums.total)


def inner_product(xs: list, ys: list, zeros: int, total: Callable[..., float] = sums.column) -> float:
    parts = [(x, y, x * y) for x, y in zip(xs, ys, strict=True)]
    hidden = [part != part and ((zeros & 1 and x == 0) or (zeros & 2 and y == 0)) for x, y, part in parts]
    return total(add, 0.0, [0.0 if hide else part for (_, _, part), hide in zip(parts, hidden, strict=True)])


def matmul(op: f.Op, a: Array, b: Array) -> Array:
    a, b = transpose(a) if op.attr("ta") else a, transpose(b) if op.attr("tb") else b
    (n, k), (k2, m) = a.shape, b.shape
    if k != k2:
        raise Failure("R0301", f"inner sizes {k} and {k2}")
    rows = [a.items[i * k : (i + 1) * k] for i in range(n)]
    columns = [b.items[j::m] for j in range(m)]
    return Array((n, m), [inner_product(r, c, masked(op)) for r in rows for c in columns])


def convolution(op: f.Op, a: Array, b: Array, *numbers: int) -> Array:
    *steps, rows, columns = numbers
    y, x, w = shapes(op.op, a.shape, b.shape, steps[-1], rows, columns)
    wanted, zeros = WANTED[op.op], masked(op)
    to, left, right = [(0, 1, 2), (1, 0, 2), (2, 1, 0)][wanted]
    shape = (y, x, w)[wanted]
    items = [0.0] * math.prod(shape)
    for at in terms(y, x, w, *steps):
        items[at[to]] += inner_product([a.items[at[left]]], [b.items[at[right]]], zeros)
    return Array(shape, items)


# ---- accumulating ---------------------------------------------------------------------------------------------------


def acc_add(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Array) and a.shape != b.shape:
        raise Bug(f"flat: acc_add of {a.shape} and {b.shape}")
    return scalar_row(lambda x, y: x + y, (a, b))


def zero_of(ty: f.Type) -> object:
    match ty:
        case f.Num(name):
            return 0.0 if name[0] == "f" else 0
        case f.Tup(items):
            return tuple(map(zero_of, items))
        case _:
            return None


def acc_zeros(ty: Any, a: Array | None, *dims: int) -> Array:
    return Array(dims, [zero_of(ty.elem)] * math.prod(dims)) if a is None else a


def acc_extend(a: Array, n: int) -> Array:
    return Array((n,), a.items + [0.0] * (n - len(a.items)))


def acc_index(ty: Any, rank: int, a: Array | None, v: Any, *rest: int) -> Array | None:
    if v is None:
        return a
    a = acc_zeros(ty, a, *rest[:rank])
    return update(a, acc_add(index(a, *rest[rank:]), v), *rest[rank:])


def acc_slice(ty: Any, rank: int, a: Array | None, v: Array | None, *rest: int) -> Array | None:
    if v is None:
        return a
    a, lo = acc_zeros(ty, a, *rest[:rank]), rest[rank]
    rows = slice_(a, 0, lo), slice_(a, lo, lo + v.shape[0]), slice_(a, lo + v.shape[0], a.shape[0])
    return Array(a.shape, rows[0].items + acc_add(rows[1], v).items + rows[2].items)


# ---- effects --------------------------------------------------------------------------------------------------------


def scalar_text(x: object) -> str:
    return str(x).lower() if isinstance(x, bool) else repr(x)


def check_shapes(a: Array, b: Array) -> None:
    if a.shape != b.shape:
        raise Failure("R0301", "shapes do not agree")


def check_equal(actual: int, expected: int) -> None:
    if actual != expected:
        raise Failure("R0301", f"{actual} is not {expected}")


def check_index(i: int, n: int) -> None:
    if not 0 <= i < n:
        raise Failure("R0701", f"index {i} of {n}")


def fail(outside: Outside, op: f.Op, args: list, ty: f.Type) -> tuple:
    raise Failure(str(op.attr("code")), str(args[0]))


def exit_(code: int) -> None:
    raise Failure("exit", str(code))


def assign(cell: list, content: object) -> None:
    cell[0] = content


def missing(outside: Outside, op: f.Op, args: list, ty: f.Type) -> tuple:
    """Raises a Bug: the interpreter has no files, clocks, C functions or LAPACK."""
    raise Bug(f"flat: the interpreter has no {op.op}")


# ---- all of them ----------------------------------------------------------------------------------------------------

Evaluation = Callable[[Outside, f.Op, list, f.Type], tuple]
"""The world, an operation, its operands, the type of its (first) result -> its results."""


def value(fn: Callable[..., object]) -> Evaluation:
    """Evaluation by a function of the operands, which returns the result."""
    return lambda outside, op, args, ty: (fn(*args),)


def typed(fn: Callable[[f.Op, list, f.Type], object]) -> Evaluation:
    """Evaluation by a function that also needs attributes or the result's type."""
    return lambda outside, op, args, ty: (fn(op, args, ty),)


def done(act: Callable[..., object]) -> Evaluation:
    """Evaluation by a function of the operands, for its effect: no result."""

    def evaluate(outside: Outside, op: f.Op, args: list, ty: f.Type) -> tuple:
        act(*args)
        return ()

    return evaluate


def told(act: Callable[..., object]) -> Evaluation:
    """Evaluation by a function of the outside world and the operands, for its effect: no result."""

    def evaluate(outside: Outside, op: f.Op, args: list, ty: f.Type) -> tuple:
        act(outside, *args)
        return ()

    return evaluate


EVALUATE: dict[str, Evaluation] = {
    **{name: typed(scalar) for name, row in OPS.items() if row.scalar},
    "cast": typed(cast), "bitcast": typed(bitcast),
    # arrays
    "dim": typed(lambda op, args, ty: args[0].shape[op.attr("k")] if args[0] is not None else 0),
    "index": value(index), "update": value(update), "slice": value(slice_), "concat": value(concat),
    "reshape": value(reshape), "copy": value(lambda a: a), "copied": value(lambda a: a), "transpose": value(transpose),
    "fill": value(fill), "iota": value(lambda n: Array((n,), list(range(n)))),
    "array": typed(lambda op, args, ty: stack(args, ty)),
    "sum": typed(lambda op, args, ty: args[0].sum_to(rank_of(ty), ty)),
    "argmax": value(lambda a: extremum(a, operator.gt)), "argmin": value(lambda a: extremum(a, operator.lt)),
    "sort": value(lambda a: Array(a.shape, [a.items[i] for i in order(a).items])), "argsort": value(order),
    "sum_to": typed(lambda op, args, ty: args[0].sum_to(rank_of(ty), ty) if isinstance(args[0], Array) else args[0]),
    "dot": typed(lambda op, args, ty: dot(op, *args)), "matmul": typed(lambda op, args, ty: matmul(op, *args)),
    "matmul_acc": typed(lambda op, args, ty: acc_add(args[0], matmul(op, *args[1:]))),
    **dict.fromkeys(WANTED, typed(lambda op, args, ty: convolution(op, *args))),
    "stop_grad": value(lambda x: x), "has_lapack": value(lambda: False),
    **dict.fromkeys((name for name in OPS if name.startswith("lapack_")), missing),
    # accumulating
    "is_null": value(lambda x: x is None), "acc_add": value(acc_add),
    "acc_zeros": typed(lambda op, args, ty: acc_zeros(ty, *args)),
    "acc_extend": value(acc_extend),
    "acc_index": typed(lambda op, args, ty: acc_index(ty, op.attr("rank"), *args)),
    "acc_slice": typed(lambda op, args, ty: acc_slice(ty, op.attr("rank"), *args)),
    # strings
    "str_append": value(lambda a, b: a + b), "str_length": value(len),
    "str_codes": value(lambda s: Array((len(s),), list(map(ord, s)))),
    "str_of_codes": value(lambda a: "".join(map(chr, a.items))),
    "str_bytes": value(lambda s: Array((len(s.encode()),), list(s.encode()))), "str_of_bytes": missing,
    "str_cmp": value(lambda a, b: (a > b) - (a < b)),
    "str_to_int": lambda outside, op, args, ty: strings.to_int(args[0]),
    "str_to_table": missing,
    "str_to_float": lambda outside, op, args, ty: strings.to_float(args[0]),
    "buf_str": told(lambda outside, s: outside.buffer.append(s)),
    "buf_quoted": told(lambda outside, s: outside.buffer.append(f'"{s}"')),
    "buf_num": told(lambda outside, x: outside.buffer.append(scalar_text(x))),
    "buf_format": told(lambda outside, spec, x, _: outside.buffer.append(format(x, spec))),
    "buf_take": lambda outside, op, args, ty: (outside.take(),),
    # effects
    "same_shape": done(check_shapes), "check_equal": done(check_equal), "fail": fail,
    "check_lengths": done(check_equal), "check_index": done(check_index), "exit": done(exit_),
    "ref_new": value(lambda x: [x]), "ref_get": value(lambda cell: cell[0]), "ref_set": done(assign),
    "state": lambda outside, op, args, ty: (outside.state(op.attr("name"), ty),),
    "write": told(lambda outside, s: outside.output.append(s)), "progress": done(lambda s: None),
    "read_text": missing, "write_text": missing, "read_bytes": missing, "write_bytes": missing, "arg_count": missing,
    "read_line": missing,
    "arg": missing, "env": missing, "time": missing, "mpi": missing, "extern": missing,
    "tick": told(Outside.tick), "tally": missing,
    "need_host": done(lambda x: None),
    "dup": done(lambda x: None), "drop": done(lambda x: None), "take": done(lambda cell: None),
}  # fmt: skip


def apply_op(outside: Outside, op: f.Op, args: list, vars_: tuple[f.Var, ...]) -> tuple:
    """The results of an operation that binds `vars_`."""
    return EVALUATE[op.op](outside, op, args, vars_[0].ty if vars_ else f.UNIT)
