"""Rows of the operations on arrays.  Bounds, shapes and negative counts are checked unless attr `unchecked` says that
it is not needed: true, or `here` if that holds only where the operation stands.  With attr `sure` = k, the last k
indices are not checked."""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import replace

from dplc.flat.ops.columns import (
    NONE,
    ZERO,
    always,
    each_of_first,
    eight_of_first,
    fixed,
    framed,
    free,
    if_known,
    like_first,
    linear,
    of_first,
    one,
    perhaps_null,
    product,
    reading,
    same_type,
    signed_as,
    spread,
    summing,
    unknown,
    unknown_sign,
    view,
)
from dplc.flat.ops.row import (
    Attrs,
    Cost,
    Derivative,
    Dim,
    DimOf,
    Dims,
    Effect,
    Fails,
    Measure,
    Result,
    Row,
    Second,
    Solid,
    Types,
)
from dplc.flat.term import BOOL, F64, I64, Arr, Atom, Const, Op, Type
from dplc.flat.types import elem_of, of_rank, rank_of

# ---- types ----------------------------------------------------------------------------------------------------------

# messages
DIFFERENT = "sizes [{a}] and [{b}] differ"
UNFIT = "cannot multiply: the inner sizes {a} and {b} differ"
UNEQUAL = "rows of sizes [{a}] and [{b}] differ"
RAGGED = "an array's rows must have one size: [{a}], [{b}]"


def rows_of(ty: Type, n: int) -> Type:
    """The type of the part of an array at `n` indices."""
    return of_rank(elem_of(ty), rank_of(ty) - n)


def made_of(i: int) -> Result:
    """The result is an array whose elements are like operand `i`."""
    return lambda args, at: (of_rank(args[i], 1),)


def summed_to(args: Types, at: Attrs) -> Types:
    return (of_rank(elem_of(args[0]), at["rank"]),)


# ---- dimensions -----------------------------------------------------------------------------------------------------


def of_product(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    *_, a, b = op.args
    return of(a, int(op.attr("ta", False))) if k == 0 else of(b, 1 - int(op.attr("tb", False)))


def of_filled(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    count, x = op.args
    return count if k == 0 else of(x, k - 1)


def of_slice(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    array, lo, hi = op.args
    if k:
        return of(array, k)
    if isinstance(lo, Const) and isinstance(hi, Const) and isinstance(lo.value, int) and isinstance(hi.value, int):
        return Const(hi.value - lo.value, I64) if 0 <= lo.value <= hi.value else None
    return hi if lo == Const(0, I64) else None


def of_joined(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    """The lengths of two arrays one behind the other, a guess if one is.  Inner lengths may be those of either."""
    known = [n for n in (of(a, k) for a in op.args) if isinstance(n, Const)]
    if k or len(known) < 2:
        return None
    lengths = [n.value for n in known if isinstance(n.value, int)]
    return Const(sum(lengths), I64) if len(lengths) == 2 else next(n for n in known if not isinstance(n.value, int))


def of_elements(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    return Const(len(op.args), I64) if k == 0 else of(op.args[0], k - 1)


# ---- costs ----------------------------------------------------------------------------------------------------------


def of_matmul(m: Measure, op: Op) -> Atom:
    """The cost of a matrix product: two for each pair of factors."""
    *_, a, b = op.args
    rows, inner = (m.dim(a, k ^ bool(op.attr("ta"))) for k in (0, 1))
    return m.product(2, rows, inner, m.dim(b, 1 ^ bool(op.attr("tb"))))


def of_dot(m: Measure, op: Op) -> Atom:
    return m.op("mul", 2, m.elements(op.args[0]))


def of_update(m: Measure, op: Op) -> Atom | int:
    return m.elements(op.args[1]) if rank_of(op.args[1].ty) else 1


def of_concat(m: Measure, op: Op) -> Atom:
    return m.op("add", m.elements(op.args[0]), m.elements(op.args[1]))


def of_fill(m: Measure, op: Op) -> Atom:
    return m.product(op.args[0], m.elements(op.args[1]))


def of_array(m: Measure, op: Op) -> Atom:
    return m.product(len(op.args), m.elements(op.args[0]))


def factoring(tall: int, square: int) -> Cost:
    """The cost of factoring an m x n matrix: `tall` thirds of m n n and `square` thirds of n n n (Golub and Van
    Loan)."""

    def cost(m: Measure, op: Op) -> Atom:
        rows, n = (m.dim(op.args[0], k) for k in (0, 1))
        thirds = m.op("add", m.product(tall, rows, n, n), m.product(square, n, n, n))
        return m.op("div", thirds, 3)

    return cost


def solving(m: Measure, op: Op) -> Atom:
    b = op.args[-1]
    return m.product(m.dim(b, 0), m.elements(b))


def is_row(op: Op, _: Callable[[Atom], bool]) -> bool:
    """True for a row, which is never null: null has none."""
    return len(op.args) <= rank_of(op.args[0].ty)


# ---- kinds of rows --------------------------------------------------------------------------------------------------


def row(
    name: str, doc: str, *, result: Result, second: Second, dims: Dims, own: tuple[int, ...], fresh: bool, solid: Solid,
    changes: bool, reduces: bool, fails: Fails, cost: Cost, cheap: bool, light: bool, loops: bool,
    short: bool, derivative: Derivative,
) -> Row:  # fmt: skip
    """An operation without effects."""
    return Row(
        name, doc, scalar=None, elementwise=False, result=result, second=second, dims=dims,
        own=own, fresh=fresh, solid=solid, changes=changes, accumulates=False, reduces=reduces,
        reads=False, views=False, framed=False, spread=False, keeps="", finds="", sign=None, positive=unknown_sign,
        compares=False,
        fails=fails, effects=Effect.NONE, shared=False,
        cost=cost, cheap=cheap, quick=False, cubic=False, light=light, loops=loops, short=short,
        derivative=derivative,
    )  # fmt: skip


def array(
    name: str, doc: str, *, result: Result, second: Second, dims: Dims, own: tuple[int, ...], fresh: bool, fails: Fails,
    cost: Cost, light: bool, loops: bool, derivative: Derivative,
) -> Row:  # fmt: skip
    """An operation that returns an array, never null."""
    return row(
        name, doc, result=result, second=second, dims=dims, own=own, fresh=fresh, solid=always, changes=False,
        reduces=False, fails=fails, cost=cost, cheap=False, light=light, loops=loops, short=False,
        derivative=derivative,
    )  # fmt: skip


def reduction(
    name: str, doc: str, *, result: Result, second: Second, dims: Dims, fails: Fails, cost: Cost,
    derivative: Derivative,
) -> Row:  # fmt: skip
    """An operation that sums elements."""
    return row(
        name, doc, result=result, second=second, dims=dims, own=(), fresh=False, solid=perhaps_null, changes=False,
        reduces=True, fails=fails, cost=cost, cheap=False, light=False, loops=True, short=False,
        derivative=derivative,
    )  # fmt: skip


def matrices(name: str, doc: str, *, own: tuple[int, ...], fresh: bool, second: Second, factors: Derivative) -> Row:
    """A product of matrices."""
    made = array(
        name, doc, result=like_first, second=second, dims=of_product, own=own, fresh=fresh, fails=Fails.SHAPES,
        cost=of_matmul, light=False, loops=False, derivative=factors,
    )  # fmt: skip
    return replace(made, cubic=True)


def extremum(name: str, doc: str, *, finds: str) -> Row:
    """An operation that finds a number in an array.  The number itself is read by `index`, which has the derivative."""
    made = row(
        name, doc, result=fixed(I64), second=None, dims=unknown, own=(), fresh=False, solid=perhaps_null, changes=False,
        reduces=False, fails=Fails.NEVER, cost=each_of_first, cheap=False, light=False, loops=False, short=False,
        derivative=ZERO,
    )  # fmt: skip
    return reading(replace(made, finds=finds))


def lapack(name: str, doc: str, *, result: Result, cost: Cost, cubic: bool) -> Row:
    """A LAPACK routine, which may be unavailable.  Its derivative is that of the library function that uses it."""
    made = row(
        name, doc, result=result, second=None, dims=unknown, own=(), fresh=False, solid=perhaps_null, changes=False,
        reduces=False, fails=Fails.NEVER, cost=cost, cheap=False, light=False, loops=False, short=False,
        derivative=NONE,
    )  # fmt: skip
    return replace(made, cubic=cubic, shared=True)


# ---- the rows -------------------------------------------------------------------------------------------------------

MATRIX, VECTOR = Arr(F64, 2), Arr(F64, 1)

ROWS = (
    reading(row("dim", "a, attr k -> i64: the length of dimension k",
                result=fixed(I64), second=None, dims=unknown, own=(), fresh=False, solid=perhaps_null, changes=False,
                reduces=False, fails=Fails.NEVER, cost=free, cheap=True, light=True, loops=False, short=True,
                derivative=ZERO)),
    view(row("index", "a, i ... -> element, or the sub-array left after the indices (a view)",
             result=lambda args, at: (rows_of(args[0], len(args) - 1),), second=None,
             dims=lambda of, op, rank, k: of(op.args[0], k + len(op.args) - 1),
             own=(), fresh=False, solid=is_row, changes=False, reduces=False,
             fails=Fails.BOUNDS, cost=one, cheap=False, light=True, loops=False, short=True, derivative=linear(0))),
    spread(row("update", "a, v, i ... -> a with v (an element or sub-array) there",
               result=like_first, second=lambda args, at: rows_of(args[0], len(args) - 2), dims=of_first,
               own=(0, 1), fresh=True, solid=always, changes=True, reduces=False, fails=Fails.BOUNDS, cost=of_update,
               cheap=False, light=False, loops=False, short=True, derivative=linear(0, 1))),
    view(array("slice", "a, lo, hi -> elements of dimension 0 (a view)",
               result=like_first, second=None, dims=of_slice,
               own=(), fresh=False, fails=Fails.BOUNDS, cost=free, light=False, loops=False, derivative=linear(0))),
    array("concat", "a, b -> along dimension 0; inner shapes must agree",
          result=like_first, second=same_type, dims=of_joined,
          own=(0, 1), fresh=True, fails=Fails.SHAPES, cost=of_concat, light=False, loops=False,
          derivative=linear(0, 1)),
    view(array("reshape", "a, d0 ... -> the same elements in new dimensions (a view), as many; told: a has them",
               result=lambda args, at: (Arr(elem_of(args[0]), len(args) - 1),), second=None,
               dims=lambda of, op, rank, k: op.args[1 + k],
               own=(0,), fresh=False, fails=Fails.VALUES, cost=free, light=False, loops=False, derivative=linear(0))),
    signed_as(0, spread(array("copy", "a -> the same elements, in memory of their own",
                              result=like_first, second=None, dims=of_first,
                              own=(), fresh=True, fails=Fails.NEVER, cost=each_of_first, light=False, loops=False,
                              derivative=linear(0)))),
    signed_as(0, array("transpose", "a of rank >= 2 -> its first two dimensions exchanged",
                       result=like_first, second=None,
                       dims=lambda of, op, rank, k: of(op.args[0], 1 - k if k < 2 else k),
                       own=(), fresh=False, fails=Fails.NEVER, cost=each_of_first, light=False, loops=False,
                       derivative=linear(0))),
    signed_as(1, spread(framed(array(
        "fill", "n, x -> n copies of x as a new outermost dimension; x may be an array",
        result=made_of(1), second=None, dims=of_filled, own=(1,), fresh=True, fails=Fails.COUNT,
        cost=of_fill, light=False, loops=True, derivative=linear(1))))),
    spread(array("iota", "n -> 0 .. n - 1 as i64",
                 result=fixed(Arr(I64, 1)), second=None, dims=lambda of, op, rank, k: op.args[0],
                 own=(), fresh=True, fails=Fails.VALUES, cost=lambda m, op: op.args[0], light=False, loops=True,
                 derivative=NONE)),
    spread(framed(array("array", "x0 ... (at least one) -> array of them; array operands must have one shape",
                        result=made_of(0), second=None, dims=of_elements, own=(), fresh=True, fails=Fails.SHAPES,
                        cost=of_array, light=True, loops=False, derivative=linear()))),
    summing(spread(framed(matrices(
        "matmul", "a, b of rank 2, attrs ta, tb (transposed first), masked (`flat/masked.py`) -> rank 2",
        own=(), fresh=False, second=same_type, factors=product(0, 1))))),
    signed_as(0, spread(matrices("matmul_acc", "c (null or rank 2), a, b, attrs ta, tb, masked -> c + a @ b",
                                 own=(0,), fresh=True, second=None, factors=product(1, 2, 0)))),
    summing(reading(reduction("sum", "a -> sum over dimension 0, of numbers (rank 1: a scalar)",
                              result=lambda args, at: (rows_of(args[0], 1),), second=None,
                              dims=lambda of, op, rank, k: of(op.args[0], k + 1),
                              fails=Fails.NEVER, cost=each_of_first, derivative=linear(0)))),
    reduction("sum_to",
              "a, attr rank -> sum over leading dimensions until that rank is left (0: scalar); null gives null",
              result=summed_to, second=None, dims=if_known(0),
              fails=Fails.NEVER, cost=each_of_first, derivative=linear(0)),
    summing(reading(reduction("dot", "a, b of rank 1, attr masked -> scalar",
                              result=lambda args, at: (elem_of(args[0]),), second=same_type, dims=unknown,
                              fails=Fails.SHAPES, cost=of_dot, derivative=product(0, 1)))),
    extremum("argmax", "a of rank 1 -> the index of its first greatest number, or of its first NaN; 0 if it is empty",
             finds="max"),
    extremum("argmin", "a of rank 1 -> the index of its first least number, or of its first NaN; 0 if it is empty",
             finds="min"),
    reading(array("sort", "a of numbers, of rank 1 -> in ascending order, stable, NaN last; `differentiate` expands it",
                  result=like_first, second=None, dims=of_first,
                  own=(), fresh=False, fails=Fails.NEVER, cost=eight_of_first, light=False, loops=False,
                  derivative=NONE)),
    reading(array("argsort", "a of numbers, of rank 1 -> the indices that sort it: stable, NaN last",
                  result=fixed(Arr(I64, 1)), second=None, dims=of_first,
                  own=(), fresh=False, fails=Fails.NEVER, cost=eight_of_first, light=False, loops=False,
                  derivative=ZERO)),
    row("copied", "an array of numbers or string that others own -> the same in the program's own memory",
        result=like_first, second=None, dims=unknown, own=(), fresh=False, solid=perhaps_null, changes=False,
        reduces=False, fails=Fails.NEVER, cost=one, cheap=False, light=False, loops=False, short=False,
        derivative=NONE),
    row("stop_grad", "x -> x, with derivative zero",
        result=like_first, second=None, dims=of_first, own=(0,), fresh=False, solid=perhaps_null, changes=False,
        reduces=False, fails=Fails.NEVER, cost=free, cheap=False, light=False, loops=False, short=False,
        derivative=ZERO),
    lapack("has_lapack", "-> bool: whether LAPACK is there, found when first asked", result=fixed(BOOL), cost=one,
           cubic=False),
    lapack("lapack_lu", "a -> both factors, order; this and the following as in prims",
           result=fixed(MATRIX, Arr(I64, 1)), cost=factoring(0, 2), cubic=True),
    lapack("lapack_cholesky", "a -> l", result=fixed(MATRIX), cost=factoring(0, 1), cubic=True),
    lapack("lapack_qr", "a -> q, r", result=fixed(MATRIX, MATRIX), cost=factoring(12, -4), cubic=True),
    lapack("lapack_eigh", "a -> w, v", result=fixed(VECTOR, MATRIX), cost=factoring(0, 27), cubic=True),
    lapack("lapack_svd", "a -> u, s, v", result=fixed(MATRIX, VECTOR, MATRIX), cost=factoring(42, 24), cubic=True),
    lapack("lapack_triangular", "upper, transposed, ones, t, b -> x", result=fixed(MATRIX), cost=solving,
           cubic=True),
)  # fmt: skip
