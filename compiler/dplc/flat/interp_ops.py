"""The operations of flat on the values of `interp`."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from ctypes import c_float
from dataclasses import dataclass, field
from typing import Any

from dpl.diagnostics import Bug
from dpl.node import node
from dpl.prims import TABLE

from dplc.flat import term as f
from dplc.flat.types import COMPARISONS, elem_of


@node
class Array:
    shape: tuple[int, ...]
    items: list

    def sum_to(self, rank: int) -> Any:
        """Sums over leading dimensions until `rank` are left."""
        size = math.prod(self.shape[len(self.shape) - rank :])
        totals = [sum(self.items[i::size], 0 * zero) for i, zero in enumerate(self.items[:size])] or [0.0] * size
        return Array(self.shape[len(self.shape) - rank :], totals) if rank else totals[0]


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a Data type."""

    tag: int
    payload: object = None


class Failure(Exception):
    """A run-time error of the program."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@dataclass(slots=True)
class Outside:
    output: list[str] = field(default_factory=list)
    buffer: list[str] = field(default_factory=list)
    ticks: int = 0


# ---- scalars --------------------------------------------------------------------------------------------------------


def half(x: float) -> float:
    """The nearest f16."""
    try:
        return struct.unpack("e", struct.pack("e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def wrap(x: Any, ty: f.Type) -> Any:
    """A Python number as one of type `ty`."""
    match elem_of(ty):
        case f.Num("bool"):
            return bool(x)
        case f.Num("f64"):
            return float(x)
        case f.Num("f32"):
            return c_float(x).value
        case f.Num("f16"):
            return half(x)
        case f.Num(name):
            bits = int(name[1:])
            x = int(x) & ((1 << bits) - 1)
            return x - (1 << bits) if name[0] == "i" and x >> (bits - 1) else x
        case _:
            return x


def scalar_row(fn: Callable, args: Sequence) -> Any:
    """A function of scalars on operands of several ranks; those of lower rank are lifted over leading dimensions."""
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


def scalar_op(op: f.Op, args: list, result: f.Type) -> object:
    evaluate = TABLE[op.op].eval
    assert evaluate is not None
    if op.op in ("div", "mod", "quot", "rem") and any(x == 0 and isinstance(x, int) for x in flat_items(args[1])):
        raise Failure("R0601", "division by zero")
    if op.op in COMPARISONS or op.op == "select":
        return scalar_row(evaluate, args)
    return scalar_row(lambda *xs: wrap(evaluate(*xs), result), args)


def flat_items(x: Any) -> list:
    return x.items if isinstance(x, Array) else [x]


# ---- arrays ---------------------------------------------------------------------------------------------------------


def stack(parts: list, ty: Any, inner: tuple[int, ...] = ()) -> Array:
    """The array (of type `ty`) of equal parts; `inner` are its inner sizes if there are none."""
    if ty.rank == 1 or not parts:
        return Array((len(parts), *(inner or [0] * (ty.rank - 1))), list(parts))
    if any(p.shape != parts[0].shape for p in parts):
        raise Failure("R0301", "inner arrays of different shapes")
    return Array((len(parts), *parts[0].shape), [x for p in parts for x in p.items])


def place(a: Array, indices: Sequence[int]) -> tuple[int, int]:
    """Where the sub-array at `indices` begins, and its size."""
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


def sum_(a: Array) -> object:
    return a.sum_to(len(a.shape) - 1)


def dot(a: Array, b: Array) -> object:
    if a.shape != b.shape:
        raise Failure("R0301", "dot of different sizes")
    return sum((x * y for x, y in zip(a.items, b.items, strict=True)), 0.0)


def matmul(ta: bool, tb: bool, a: Array, b: Array) -> Array:
    a, b = transpose(a) if ta else a, transpose(b) if tb else b
    (n, k), (k2, m) = a.shape, b.shape
    if k != k2:
        raise Failure("R0301", f"inner sizes {k} and {k2}")
    rows = [a.items[i * k : (i + 1) * k] for i in range(n)]
    columns = [b.items[j::m] for j in range(m)]
    return Array((n, m), [sum((x * y for x, y in zip(r, c, strict=True)), 0.0) for r in rows for c in columns])


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


# ---- all of them ----------------------------------------------------------------------------------------------------


def scalar_text(x: object) -> str:
    return str(x).lower() if isinstance(x, bool) else repr(x)


PURE: dict[str, Callable] = {
    "index": index, "update": update, "slice": slice_, "concat": concat, "reshape": reshape, "transpose": transpose,
    "fill": fill, "sum": sum_, "dot": dot, "acc_add": acc_add, "is_null": lambda x: x is None, "stop_grad": lambda x: x,
    "copy": lambda x: x,
    "iota": lambda n: Array((n,), list(range(n))), "str_append": lambda a, b: a + b, "str_length": len,
    "str_codes": lambda s: Array((len(s),), list(map(ord, s))), "str_of_codes": lambda a: "".join(map(chr, a.items)),
    "str_cmp": lambda a, b: (a > b) - (a < b),
}  # fmt: skip


def apply_op(outside: Outside, op: f.Op, args: list, vars_: tuple[f.Var, ...]) -> tuple:
    """The results of an operation that binds `vars_`."""
    attr, ty = op.attr, vars_[0].ty if vars_ else f.UNIT
    match op.op:
        case name if name in PURE:
            return (PURE[name](*args),)
        case name if name in TABLE and TABLE[name].elementwise:
            return (scalar_op(op, args, ty),)
        case "cast":
            return (scalar_row((attr("to") in TABLE and TABLE[attr("to")].eval) or bool, args),)
        case "dim":
            return (args[0].shape[attr("k")] if args[0] is not None else 0,)
        case "array":
            return (stack(args, ty),)
        case "sum_to":
            return (args[0] if not isinstance(args[0], Array) else args[0].sum_to(attr("rank")),)
        case "matmul":
            return (matmul(attr("ta"), attr("tb"), *args),)
        case "matmul_acc":
            return (acc_add(args[0], matmul(attr("ta"), attr("tb"), *args[1:])),)
        case "acc_zeros":
            return (acc_zeros(ty, *args),)
        case "acc_index":
            return (acc_index(ty, attr("rank"), *args),)
        case "acc_slice":
            return (acc_slice(ty, attr("rank"), *args),)
        case "same_shape":
            if args[0].shape != args[1].shape:
                raise Failure("R0301", "shapes do not agree")
            return ()
        case "check_equal":
            if args[0] != args[1]:
                raise Failure("R0301", f"{args[0]} is not {args[1]}")
            return ()
        case "fail":
            raise Failure(str(attr("code")), str(args[0]))
        case _:
            return effect(outside, op, args)


def effect(outside: Outside, op: f.Op, args: list) -> tuple:
    match op.op:
        case "write":
            outside.output.append(args[0])
        case "buf_str":
            outside.buffer.append(args[0])
        case "buf_quoted":
            outside.buffer.append(f'"{args[0]}"')
        case "buf_num":
            outside.buffer.append(scalar_text(args[0]))
        case "buf_format":
            outside.buffer.append(format(args[1], args[0]))
        case "buf_take":
            text = "".join(outside.buffer)
            outside.buffer.clear()
            return (text,)
        case "tick":
            outside.ticks += args[0]
        case "progress" | "dup" | "drop":
            pass
        case "ref_new":
            return ([args[0]],)
        case "ref_get":
            return (args[0][0],)
        case "ref_set":
            args[0][0] = args[1]
        case _:
            raise Bug(f"flat: the interpreter has no {op.op}")
    return ()
