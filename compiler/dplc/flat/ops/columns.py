"""Column values that several rows share."""

from __future__ import annotations

from collections.abc import Callable

from dpl.node import replace

from dplc.flat.ops.row import Attrs, Derivative, Dim, DimOf, Dims, Measure, Result, Row, Rule, Types
from dplc.flat.term import Atom, Const, Op, Type
from dplc.flat.types import rank_of

# ---- types of results, and of the second operand --------------------------------------------------------------------


def fixed(*types: Type) -> Result:
    """Results of these types, whatever the operands are."""
    return lambda args, at: types


nothing = fixed()


def anything(args: Types, at: Attrs) -> None:
    """Results of any types."""
    return None


def like_first(args: Types, at: Attrs) -> Types:
    """One result, of the first operand's type."""
    return (args[0],)


def same_type(args: Types, at: Attrs) -> Type:
    """The first operand's type."""
    return args[0]


# ---- dimensions -----------------------------------------------------------------------------------------------------


def unknown(of: DimOf, op: Op, rank: int, k: int) -> None:
    """A result whose dimensions are not known from the operands."""
    return None


def of_first(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    """A result that has the first operand's dimensions."""
    return of(op.args[0], k)


def if_known(*operands: int) -> Dims:
    """A length that is a known number for one of these operands: these may be null, but not where they have one."""

    def dim(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
        own = [of(op.args[i], rank_of(op.args[i].ty) - rank + k) for i in operands]
        return next((n for n in own if isinstance(n, Const)), None)

    return dim


# ---- whether a result is null ---------------------------------------------------------------------------------------


def always(op: Op, solid: Callable[[Atom], bool]) -> bool:
    """The result is never null."""
    return True


def perhaps_null(op: Op, solid: Callable[[Atom], bool]) -> bool:
    """The result may be null, whatever the operands are."""
    return False


# ---- whether a result has -0.0 --------------------------------------------------------------------------------------


def unknown_sign(op: Op, positive: Callable[[Atom], bool]) -> bool:
    """Nothing is known of the result's sign."""
    return False


# ---- costs ----------------------------------------------------------------------------------------------------------


def free(m: Measure, op: Op) -> int:
    """An operation that costs nothing."""
    return 0


def one(m: Measure, op: Op) -> int:
    """An operation that costs as much as one addition."""
    return 1


def each(m: Measure, op: Op) -> Atom | int:
    """The cost is one for each element of the largest operand."""
    whole = max(op.args, key=lambda a: rank_of(a.ty))
    return m.elements(whole) if rank_of(whole.ty) else 1


def each_of_first(m: Measure, op: Op) -> Atom | int:
    """One operation for each element of the first operand."""
    return m.elements(op.args[0]) if rank_of(op.args[0].ty) else 1


def eight_of_first(m: Measure, op: Op) -> Atom | int:
    """The cost of a sort: it compares each element log2 n times, for which eight stands."""
    return m.op("mul", m.elements(op.args[0]), 8)


# ---- kinds of rows --------------------------------------------------------------------------------------------------


def reading(row: Row) -> Row:
    """An operation whose array operands may lie in the stack frame."""
    return replace(row, reads=True)


def view(row: Row) -> Row:
    """An operation whose result is a part of its first operand."""
    return signed_as(0, replace(row, views=True))


def framed(row: Row) -> Row:
    """An operation whose result can lie in the stack frame."""
    return replace(row, framed=True)


def spread(row: Row) -> Row:
    """An operation whose elements a team of threads can write together."""
    return replace(row, spread=True)


def summing(row: Row) -> Row:
    """An operation that adds to 0.0, so its result is never -0.0."""
    return replace(row, positive=always)


def signed_as(operand: int, row: Row) -> Row:
    """An operation whose numbers are those of an operand, or sums of these and others: -0.0 only where that has it."""
    return replace(row, positive=lambda op, positive: positive(op.args[operand]))


# ---- derivatives ----------------------------------------------------------------------------------------------------


def without(rule: Rule, flows: tuple[int, ...] | None) -> Derivative:
    return Derivative(
        rule, flows, bilinear=(), sums=(), curved=(), chooses=False, multiplies=False, algebraic=False, chain=None
    )


ZERO = without(Rule.ZERO, ())
NONE = without(Rule.NONE, None)


def linear(*flows: int) -> Derivative:
    """Linear in these operands together; without arguments, in all operands."""
    return without(Rule.LINEAR, flows or None)


def added(*operands: int) -> Derivative:
    """Linear: the sum of these operands."""
    return Derivative(
        Rule.LINEAR, operands, bilinear=(), sums=operands, curved=(), chooses=False, multiplies=False, algebraic=False,
        chain=None,
    )  # fmt: skip


def product(left: int, right: int, *more: int) -> Derivative:
    """Bilinear in `left` and `right`, and linear in `more` together with either of them."""
    return Derivative(
        Rule.LINEAR, (*more, left, right), bilinear=(left, right), sums=(), curved=(), chooses=False, multiplies=True,
        algebraic=False, chain=None,
    )  # fmt: skip
