"""Rows of the operations on numbers; all work elementwise on arrays.  They are made from the rows of the primitive
table, which define their meaning and their derivatives."""

from __future__ import annotations

from dpl.node import replace
from dpl.prims import TABLE, elementary
from dpl.prims.scalar import CONVERSIONS

from dplc.flat.ops.columns import (
    NONE,
    always,
    each,
    free,
    linear,
    of_first,
    perhaps_null,
    unknown,
    unknown_sign,
)
from dplc.flat.ops.row import Attrs, Cost, Derivative, Dim, DimOf, Dims, Effect, Fails, Result, Row, Rule, Second, Types
from dplc.flat.term import BOOL, Const, Num, Op, Type, Var
from dplc.flat.types import elem_of, of_rank, rank_of

# ---- columns --------------------------------------------------------------------------------------------------------


def like_operand(i: int) -> Result:
    """The result has elements like those of operand `i`, and the highest rank among the operands."""

    def result(args: Types, at: Attrs) -> Types:
        rank = max(map(rank_of, args))
        return (of_rank(elem_of(args[i]), rank) if rank else args[i],)

    return result


OF_FIRST, OF_SECOND = like_operand(0), like_operand(1)


def truth(args: Types, at: Attrs) -> Types:
    return (of_rank(BOOL, max(map(rank_of, args))),)


def converted(args: Types, at: Attrs) -> Types:
    return (of_rank(Num(at["to"]), rank_of(args[0])),)


def same_elements(args: Types, at: Attrs) -> Type:
    return of_rank(elem_of(args[0]), rank_of(args[1]))


def of_same_rank(of: DimOf, op: Op, rank: int, k: int) -> Dim | None:
    """That of an operand of the same rank, all of which agree; a number, if one is known."""
    dims = [of(a, k) for a in op.args if rank_of(a.ty) == rank and isinstance(a, Var)]
    return next((dim for dim in dims if isinstance(dim, Const)), dims[0] if dims else None)


def flows(name: str) -> tuple[int, ...]:
    """The operands for which the table has a rule."""
    return tuple(i for i, rule in enumerate(TABLE[name].linear or ()) if rule is not None)


def rules(
    name: str, *, curved: tuple[int, ...], chooses: bool, multiplies: bool, chain: tuple[int, int] | None
) -> Derivative:
    """The derivative comes from the rules of the table, and its Taylor series is derived from them."""
    return Derivative(
        Rule.TABLE, flows(name), bilinear=(), sums=(), curved=curved, chooses=chooses, multiplies=multiplies,
        algebraic=False, chain=chain,
    )  # fmt: skip


def constant(name: str) -> Derivative:
    """The derivative is zero."""
    assert not flows(name)
    return rules(name, curved=(), chooses=False, multiplies=False, chain=None)


def curve(name: str, chain: tuple[int, int] | None = None) -> Derivative:
    """Not linear in any operand."""
    return rules(name, curved=flows(name), chooses=False, multiplies=True, chain=chain)


def choice(name: str) -> Derivative:
    """The result is one of the operands, chosen by their values."""
    return rules(name, curved=flows(name), chooses=True, multiplies=False, chain=None)


def algebraic(
    name: str, *, bilinear: tuple[int, ...], sums: tuple[int, ...], curved: tuple[int, ...], chooses: bool,
    multiplies: bool,
) -> Derivative:  # fmt: skip
    return Derivative(Rule.TABLE, flows(name), bilinear, sums, curved, chooses, multiplies, algebraic=True, chain=None)


def total(name: str) -> Derivative:
    """A sum of the operands, with signs."""
    sums = (0, 1) if TABLE[name].arity == 2 else ()
    return algebraic(name, bilinear=(), sums=sums, curved=(), chooses=False, multiplies=False)


# ---- kinds of rows --------------------------------------------------------------------------------------------------


def scalar(name: str, result: Result, *, second: Second, cheap: bool, quick: bool, derivative: Derivative) -> Row:
    """A scalar operation of the primitive table.  It consumes its operands."""
    primitive = TABLE[name]
    return Row(
        name, primitive.doc, primitive, elementwise=True, result=result, second=second, dims=of_same_rank,
        own=tuple(range(primitive.arity)), fresh=False, solid=always, changes=False, accumulates=False, reduces=False,
        reads=False, views=False, framed=False, spread=False, keeps="", finds="", sign=None, positive=unknown_sign,
        compares=False,
        fails=Fails.NEVER if primitive.pure else Fails.ZERO, effects=Effect.NONE, shared=False,
        cost=each, cheap=cheap, quick=quick, cubic=False, light=False, loops=True, short=False, derivative=derivative,
    )  # fmt: skip


def conversion(
    name: str, doc: str, *, dims: Dims, own: tuple[int, ...], cost: Cost, cheap: bool, derivative: Derivative
) -> Row:
    """A conversion to another number type."""
    return Row(
        name, doc, scalar=None, elementwise=True, result=converted, second=None, dims=dims,
        own=own, fresh=False, solid=perhaps_null, changes=False, accumulates=False, reduces=False,
        reads=False, views=False, framed=False, spread=False, keeps="", finds="", sign=None, positive=unknown_sign,
        compares=False,
        fails=Fails.NEVER, effects=Effect.NONE, shared=False,
        cost=cost, cheap=cheap, quick=True, cubic=False, light=False, loops=True, short=False, derivative=derivative,
    )  # fmt: skip


def function(name: str) -> Row:
    """A function of numbers that has no special row: all its properties come from the primitive table."""
    called = name in elementary.NAMES or TABLE[name].llvm.startswith("rt.")
    cheap = name in ("abs", "sign", "relu")  # a step or two, on bits or by a comparison
    return scalar(name, OF_FIRST, second=None, cheap=cheap, quick=not called, derivative=curve(name))


def chosen(name: str, *, keeps: str) -> Row:
    """The one of two numbers for which the comparison `keeps` is true."""
    made = scalar(name, OF_FIRST, second=same_elements, cheap=True, quick=True, derivative=choice(name))
    return replace(made, keeps=keeps)


def comparison(name: str, *, sign: tuple[int, int] | None) -> Row:
    """Whether two numbers, or others, compare so."""
    made = scalar(name, truth, second=None, cheap=True, quick=True, derivative=constant(name))
    return replace(made, sign=sign)


# ---- the rows -------------------------------------------------------------------------------------------------------

PARTICULAR = (
    replace(scalar("add", OF_FIRST, second=same_elements, cheap=True, quick=True, derivative=total("add")),
            positive=lambda op, positive: any(map(positive, op.args))),
    scalar("sub", OF_FIRST, second=same_elements, cheap=True, quick=True, derivative=total("sub")),
    scalar("neg", OF_FIRST, second=None, cheap=True, quick=True, derivative=total("neg")),
    scalar("mul", OF_FIRST, second=same_elements, cheap=True, quick=True,
           derivative=algebraic("mul", bilinear=(0, 1), sums=(), curved=(), chooses=False, multiplies=True)),
    scalar("div", OF_FIRST, second=same_elements, cheap=False, quick=True,
           derivative=algebraic("div", bilinear=(), sums=(), curved=(1,), chooses=False, multiplies=True)),
    scalar("pow", OF_FIRST, second=same_elements, cheap=False, quick=False, derivative=curve("pow", chain=(1, -1))),
    scalar("powi", OF_FIRST, second=None, cheap=False, quick=False, derivative=curve("powi", chain=(1, -1))),
    scalar("polygamma", OF_SECOND, second=None, cheap=False, quick=False, derivative=curve("polygamma", chain=(0, 1))),
    chosen("max", keeps="ge"),
    chosen("min", keeps="le"),
    scalar("clip", OF_FIRST, second=None, cheap=False, quick=True, derivative=choice("clip")),
    scalar("relu", OF_FIRST, second=None, cheap=False, quick=True, derivative=choice("relu")),
    scalar("select", OF_SECOND, second=None, cheap=True, quick=True,
           derivative=algebraic("select", bilinear=(), sums=(), curved=(), chooses=True, multiplies=False)),
    comparison("eq", sign=None),
    comparison("ne", sign=None),
    comparison("lt", sign=(-1, 1)),
    comparison("le", sign=(-1, 0)),
    comparison("gt", sign=(1, 1)),
    comparison("ge", sign=(1, 0)),
    *(scalar(name, truth, second=None, cheap=True, quick=True, derivative=constant(name))
      for name in ("not", "and", "or")),
    *(scalar(name, OF_FIRST, second=None, cheap=True, quick=True, derivative=constant(name))
      for name in ("bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")),
    # only occurs in derivative rules, which emit it as a cast
    scalar("to_like", OF_FIRST, second=None, cheap=False, quick=True,
           derivative=rules("to_like", curved=(), chooses=False, multiplies=True, chain=None)),
)  # fmt: skip

CASTS = (
    conversion("cast", "number (or array of them) to the scalar type attr `to`; bool to number gives 0, 1",
               dims=of_first, own=(0,), cost=each, cheap=True, derivative=linear(0)),
    conversion("bitcast", "a number -> the number of attr `to` with the same bits",
               dims=unknown, own=(), cost=free, cheap=False, derivative=NONE),
)  # fmt: skip

_KNOWN = {row.name for row in PARTICULAR} | {primitive.name for primitive in CONVERSIONS}
FUNCTIONS = tuple(function(name) for name, primitive in TABLE.items() if primitive.elementwise and name not in _KNOWN)

ROWS = (*PARTICULAR, *CASTS, *FUNCTIONS)
