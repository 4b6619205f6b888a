"""Array primitives by name, and the lifting of scalar operations over arrays.

Elements may be anything; numbers among them may be tagged, so sums and products go through the scalar operations.
`prims/sums.py` has the order of sums.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key, reduce

from dpl.diagnostics import Bug, DplError
from dpl.eval.values.indexing import index_error, slice_error
from dpl.eval.values.memory import room
from dpl.eval.values.scalar import COMPARISONS, scalar
from dpl.eval.values.structure import unequal
from dpl.eval.values.value import Array, Con, Value, list_items, make_list
from dpl.prims import sums
from dpl.prims.convolution import shapes, terms


def product(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


# ---- lifting ------------------------------------------------------------------------------------------------------


def lift1(f: Callable) -> Callable:
    """The function of one number, applied to each element of an array."""

    def lifted(x):
        return Array(x.shape, [f(v) for v in x.data]) if x.__class__ is Array else f(x)

    return lifted


def lift2(f: Callable) -> Callable:
    """Lift a binary operation.  The operand of lower rank is repeated over the leading dimensions of the other."""

    def lifted(x, y):
        if x.__class__ is not Array:
            return Array(y.shape, [f(x, v) for v in y.data]) if y.__class__ is Array else f(x, y)
        if y.__class__ is not Array:
            return Array(x.shape, [f(v, y) for v in x.data])
        shape = common_shape((x, y))
        return Array(shape, list(map(f, spread(x, shape), spread(y, shape))))

    return lifted


def lift(f: Callable) -> Callable:
    """A function of numbers, applied element by element.  Arguments of lower rank are repeated for each row."""

    def lifted(*args):
        if not any(a.__class__ is Array for a in args):
            return f(*args)
        shape = common_shape(args)
        return Array(shape, list(map(f, *(spread(a, shape) for a in args))))

    return lifted


def common_shape(args: tuple) -> tuple[int, ...]:
    """The shape of highest rank.  Raises R0703 unless the other shapes are suffixes of it."""
    shapes = [a.shape if a.__class__ is Array else () for a in args]
    shape = max(shapes, key=len)
    for s in shapes:
        if (inner := shape[len(shape) - len(s) :]) != s:
            n, m = unequal(inner, s)
            raise DplError.at("R0703", f"sizes [{n}] and [{m}] do not fit together")
    return shape


def spread(x: Value, shape: tuple[int, ...]) -> list:
    """The elements of `x`, repeated to fill `shape`."""
    if x.__class__ is not Array:
        return [x] * product(shape)
    return x.data if x.shape == shape else x.data * product(shape[: len(shape) - len(x.shape)])


# ---- making and taking apart --------------------------------------------------------------------------------------


def stack(items: list, rank: int) -> Array:
    """The array of these elements.  `rank` is that of the result; it is used if there are no elements."""
    if not items:
        return Array((0,) * rank, [])  # `sized` sets the inner sizes later
    if items[0].__class__ is not Array:
        return Array((len(items),), items)
    for item in items:
        check_row(items[0], item)
    return Array((len(items), *items[0].shape), [v for item in items for v in item.data])


def check_row(before: Value, row: Value) -> None:
    """Raises R0703 if two elements of one array are rows of different sizes."""
    if row.__class__ is Array and row.shape != before.shape:
        n, m = unequal(before.shape, row.shape)
        raise DplError.at("R0703", f"an array's rows must have one size: [{n}], [{m}]")


def rows(x: Array) -> list:
    """The elements along the outermost dimension."""
    if len(x.shape) == 1:
        return x.data
    inner = x.shape[1:]
    size = product(inner)
    return [Array(inner, x.data[i * size : (i + 1) * size]) for i in range(x.shape[0])]


def count_checked(n: int) -> int:
    """The number of elements, if it is one: raises R0702 if it is negative, R0802 if there is no memory for it."""
    if n < 0:
        raise DplError.at("R0702", f"an array cannot have {n} elements")
    return room(n)


def fill(n: int, value: Value) -> Array:
    """An array of `n` times the value, which may be a row."""
    count_checked(n)
    if value.__class__ is Array:
        room(n * len(value.data))
        return Array((n, *value.shape), value.data * n)
    return Array((n,), [value] * n)


def _offset(x: Array, indices: tuple[int, ...]) -> tuple[int, int]:
    """The start and the length, in the data, of the part at these indices.  Raises R0705 if one is out of bounds."""
    size, start = len(x.data), 0
    for k, i in enumerate(indices):
        n = x.shape[k]
        if not 0 <= i < n:
            raise index_error(i, n, len(indices) - 1 - k)
        size //= n
        start += i * size
    return start, size


def index(x: Array, *indices: int) -> Value:
    """The element at these indices, or the part of lower rank if they are fewer than the dimensions."""
    if len(indices) == 1 == len(x.shape):
        (i,) = indices
        if 0 <= i < x.shape[0]:
            return x.data[i]
    start, size = _offset(x, indices)
    if len(indices) == len(x.shape):
        return x.data[start]
    return Array(x.shape[len(indices) :], x.data[start : start + size])


def update(x: Array, value: Value, *indices: int) -> Array:
    """The array with another element or row.  Raises R0705 out of bounds, R0703 if the row has another size."""
    start, _ = _offset(x, indices)
    inner = x.shape[len(indices) :]
    if inner and value.shape != inner:
        n, m = unequal(inner, value.shape)
        raise DplError.at("R0703", f"sizes [{n}] and [{m}] differ: a row keeps its size")
    return x.updated(start, value.data if inner else [value])


def slice_(x: Array, low: int, high: int) -> Array:
    """The rows from `low` up to `high`.  Raises R0705 unless 0 <= low <= high <= length."""
    n = x.shape[0]
    if not 0 <= low <= high <= n:
        raise slice_error(low, high, n)
    size = product(x.shape[1:])
    return Array((high - low, *x.shape[1:]), x.data[low * size : high * size])


def append(x: Value, y: Value) -> Value:
    """Appends strings, lists or arrays."""
    match x:
        case str():
            return x + y
        case Con():
            return make_list(list(list_items(x)), y)
        case Array():
            if x.shape[1:] != y.shape[1:] and x.shape[0] and y.shape[0]:
                n, m = unequal(x.shape[1:], y.shape[1:])
                raise DplError.at("R0703", f"rows of sizes [{n}] and [{m}] differ")
            known = [a.shape[1:] for a in (x, y) if a.shape[0]]
            inner = known[0] if known else tuple(map(max, x.shape[1:], y.shape[1:]))  # 0 may be a guess
            return Array((x.shape[0] + y.shape[0], *inner), x.data + y.data)
        case _:
            raise Bug(f"append: {x!r}")


def reshape(x: Array, *shape: int) -> Array:
    """Reshape; one dimension may be -1 and is computed from the others.  Raises R0703 if the number of elements
    differs."""
    if -1 in shape:
        known = -product(shape)
        rest = len(x.data) // known if known else 0
        shape = tuple(rest if n == -1 else n for n in shape)
    if any(n < 0 for n in shape) or product(shape) != len(x.data):
        raise DplError.at("R0703", f"cannot reshape: {len(x.data)} elements are not {product(shape)}")
    return Array(shape, x.data.copy())


def sized(x: Array, inner: tuple[int, ...]) -> Array:
    """The array; if it has no elements, with these inner sizes after its first dimension of size 0."""
    shape = x.shape
    if 0 not in shape:
        return x
    first = shape.index(0) + 1
    return Array((*shape[:first], *inner[first - 1 :]), [])


def transpose(x: Array) -> Array:
    """The array with its first two dimensions exchanged."""
    n, m, *inner = x.shape
    size = product(tuple(inner))
    if not x.data:
        return Array((m, n, *inner), [])
    if size == 1:
        return Array((m, n, *inner), [v for j in range(m) for v in x.data[j::m]])
    parts = [x.data[(i * m + j) * size : (i * m + j + 1) * size] for j in range(m) for i in range(n)]
    return Array((m, n, *inner), [v for part in parts for v in part])


def flatten(x: Array) -> Array:
    """The array with its first two dimensions as one."""
    n, m, *inner = x.shape
    return Array((n * m, *inner), x.data.copy())


# ---- sums and products --------------------------------------------------------------------------------------------


def _zero(kind: str) -> Value:
    return 0.0 if kind[0] == "f" else 0


def sum_(kind: str) -> Callable[[Array], Value]:
    """Sum over the outermost dimension."""
    add, zero = scalar("add", kind), _zero(kind)

    def run(x: Array) -> Value:
        inner = x.shape[1:]
        if not inner:
            return sums.total(add, zero, x.data)
        size = room(product(inner))
        return Array(inner, [sums.column(add, zero, x.data[j::size]) for j in range(size)])

    return run


def extremum(beats: Callable[[Value, Value], bool]) -> Callable[[Array], int]:
    """The index of the first number that no other beats, or of the first NaN."""
    differ = COMPARISONS["ne"]

    def run(x: Array) -> int:
        best = 0
        for i, number in enumerate(x.data):
            if differ(number, number):
                return i
            if beats(number, x.data[best]):
                best = i
        return best

    return run


def _order(x: Array) -> list[int]:
    """The indices that sort an array of numbers: stable, NaN last."""
    below, differ = COMPARISONS["lt"], COMPARISONS["ne"]

    def compare(i: int, j: int) -> int:
        a, b = x.data[i], x.data[j]
        return -1 if below(a, b) else 1 if below(b, a) else int(differ(a, a)) - int(differ(b, b))

    return sorted(range(len(x.data)), key=cmp_to_key(compare))


def sort(x: Array) -> Array:
    """The numbers in ascending order, NaN last."""
    return Array(x.shape, [x.data[i] for i in _order(x)])


def argsort(x: Array) -> Array:
    """The indices that sort the numbers; equal numbers keep their order."""
    return Array(x.shape, list(_order(x)))


def dot(kind: str) -> Callable[[Array, Array], Value]:
    """The inner product of vectors of these numbers, summed in the order that native code has (`prims/sums.py`)."""
    add, mul, zero = scalar("add", kind), scalar("mul", kind), _zero(kind)

    def run(x: Array, y: Array) -> Value:
        if x.shape != y.shape:
            n, m = unequal(x.shape, y.shape)
            raise DplError.at("R0703", f"sizes [{n}] and [{m}] differ")
        return sums.total(add, zero, list(map(mul, x.data, y.data)))

    return run


def matmul(kind: str) -> Callable[[Array, Array], Value]:
    """The product of matrix and matrix, matrix and vector, or vector and matrix."""
    add, mul, zero = scalar("add", kind), scalar("mul", kind), _zero(kind)

    def run(x: Array, y: Array) -> Array:
        k, inner = x.shape[-1], y.shape[0]
        if k != inner:
            raise DplError.at("R0703", f"cannot multiply: the inner sizes {k} and {inner} differ")
        columns = product(y.shape[1:])
        room(product(x.shape[:-1]) * columns)
        left = [x.data[i * k : (i + 1) * k] for i in range(product(x.shape[:-1]))]
        right = [y.data[j::columns] for j in range(columns)]
        return Array(x.shape[:-1] + y.shape[1:], [reduce(add, map(mul, a, b), zero) for a in left for b in right])

    return run


def convolution(name: str, kind: str) -> Callable[..., Array]:
    """`conv2d` or `conv2d_data`: a sum of products for each element, in order."""
    add, mul, zero = scalar("add", kind), scalar("mul", kind), _zero(kind)

    def run(a: Array, b: Array, *numbers: int) -> Array:
        *steps, rows, columns = numbers
        y, x, w = shapes(name, a.shape, b.shape, steps[-1], rows, columns)
        made = y if name == "conv2d" else x
        data = [zero] * room(product(made))
        for in_y, in_x, in_w in terms(y, x, w, *steps):
            to, left = (in_y, in_x) if name == "conv2d" else (in_x, in_y)
            data[to] = add(data[to], mul(a.data[left], b.data[in_w]))
        return Array(made, data)

    return run


def gram(kind: str) -> Callable:
    """The matrix of the inner products of the rows of two arrays."""

    def products(x: Array, y: Array) -> Array:
        rows = [Array((a.shape[0], product(a.shape[1:])), a.data) for a in (x, y)]
        return matmul(kind)(rows[0], transpose(rows[1]))

    return products
