"""Constant folding: one operation on known operands -> an atom of the same value, if there is one.

    mul x 1.0 => x        add 2 3 => 5        is_null (fill n x) => false

Only exact folds are made: floats fold as the machine computes them, and `x + 0.0` stays where x may be -0.0, which it
turns into 0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpl.prims import TABLE, evaluation

from dplc.flat import term as f
from dplc.flat.build import Builder
from dplc.flat.numbers import same_bits, wrap
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS, result_type
from dplc.flat.signs import zeros_positive
from dplc.flat.types import elem_of, rank_of
from dplc.narrow import expect_type

TRUE, FALSE = f.Const(True, f.BOOL), f.Const(False, f.BOOL)


def fold(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    """`defs` has the right-hand sides that bind a single variable."""
    args = op.args
    if OPS[op.op].scalar:
        if not any(map(is_constant, args)):
            return of_opposites(op, defs)
        return plus_zero(op, defs) or row(op)
    others = FOLDS.get(op.op)
    return others(op, defs) if others else None


def folded(b: Builder, name: str, *args: f.Atom) -> f.Atom:
    """The result of an operation on numbers: what it folds to, or what a binding of it gives."""
    found = fold(f.Op(name, args), {})
    return b.op(name, args) if found is None else found


def of_opposites(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    """`and c (not c)` is false, and `or c (not c)` true.  Derivatives of two arms ask so: neither adds nothing."""
    if op.op not in ("and", "or") or rank_of(op.args[0].ty):
        return None
    x, y = op.args
    made = [defs.get(atom.name) if isinstance(atom, f.Var) else None for atom in (x, y)]
    opposite = any(isinstance(rhs, f.Op) and rhs.op == "not" and rhs.args == (other,)
                   for rhs, other in zip(made, (y, x), strict=True))  # fmt: skip
    return (FALSE if op.op == "and" else TRUE) if opposite else None


def _cast(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    x, to = op.args[0], str(op.attr("to"))
    return x if isinstance(x, f.Var) and elem_of(x.ty) == f.Num(to) else converted(op)


def _bitcast(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    return converted(op)


def _part(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    made = defs.get(op.args[0].name) if isinstance(op.args[0], f.Var) else None
    return part(op, made) if isinstance(made, f.Op) else None


def _reshape(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    """What was reshaped before, in the length that it was made with."""
    made = defs.get(op.args[0].name) if isinstance(op.args[0], f.Var) else None
    if not isinstance(made, f.Op) or made.op != "reshape":
        return None
    first = defs.get(made.args[0].name) if isinstance(made.args[0], f.Var) else None
    length = (first.count,) if isinstance(first, f.Build) and rank_of(made.args[0].ty) == 1 else None
    return made.args[0] if op.args[1:] == length else part(op, made)


def _is_null(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    x = op.args[0]
    return FALSE if isinstance(x.ty, f.Tup) or solid(x, defs) else TRUE if is_null(x) else None


def _acc_add(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    a, b = op.args
    return b if is_null(a) or is_zero(a) else a if is_null(b) or is_zero(b) else None


def _acc_zeros(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    return op.args[0] if solid(op.args[0], defs) else None


def _acc_part(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    return op.args[0] if is_null(op.args[1]) else None


def _sum_to(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    a = op.args[0]
    if rank_of(a.ty) == op.attr("rank"):
        return a
    return zero_of(result_type(op.op, (a.ty,), dict(op.attrs))) if is_null(a) else None


def _sum(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    """The sum of a comprehension without numbers."""
    made = defs.get(op.args[0].name) if isinstance(op.args[0], f.Var) else None
    if not isinstance(made, f.Build) or rank_of(op.args[0].ty) != 1 or made.count != f.Const(0, f.I64):
        return None
    elem = elem_of(op.args[0].ty)
    return f.Const(0.0 if f.is_float(elem) else 0, elem)


FOLDS: Mapping[str, Callable[[f.Op, Mapping[str, f.Rhs]], f.Atom | None]] = {
    "cast": _cast,
    "bitcast": _bitcast,
    "index": _part,
    "reshape": _reshape,
    "is_null": _is_null,
    "acc_add": _acc_add,
    "acc_zeros": _acc_zeros,
    "acc_index": _acc_part,
    "acc_slice": _acc_part,
    "sum": _sum,
    "sum_to": _sum_to,
}

POWERS = ("pow", "powi")
PRODUCTS = (-1, 0, 1, 2, 3, 4)  # the exponents for which `powi` multiplies or divides


def reduced(op: f.Op) -> f.Op:
    """A power with a constant exponent as `powi`, if it is products then, or else as `pow`, which has vectors (strength
    reduction).  Both give the same."""
    match op:
        case f.Op("pow", (x, f.Const(float() as exponent))) if exponent in PRODUCTS:
            return f.Op("powi", (x, f.Const(int(exponent), f.I64)), (), op.span)
        case f.Op("powi", (x, f.Const(int() as exponent))) if elem_of(x.ty) in (f.F64, f.F32):
            if exponent not in PRODUCTS and abs(exponent) < 1 << 24:  # exact at both types
                return f.Op("pow", (x, f.Const(float(exponent), elem_of(x.ty))), (), op.span)
            return op
        case _:
            return op


def part(op: f.Op, made: f.Op) -> f.Atom | None:
    """A part of what `made` gives, if it is known: an element of a fill or of a literal, the whole in its own
    dimensions."""
    match op.op, made.op, op.args:
        case "index", "array", (_, f.Const(int(k))) if 0 <= k < len(made.args):
            return made.args[k]
        case "index", "fill", (_, _) if op.attr("unchecked"):
            return made.args[1]
        case "reshape", "reshape", (x, *dims) if [*made.args[1:]] == dims:
            return x
        case _:
            return None


def is_constant(a: f.Atom) -> bool:
    return isinstance(a, f.Const)


def is_null(a: f.Atom) -> bool:
    """True for the constant null."""
    return isinstance(a, f.Const) and a.value is None


def zero_of(ty: f.Type) -> f.Const:
    """The cotangent of a float or of an array of floats before any contribution."""
    return f.Const(None if rank_of(ty) else 0.0, ty)


def is_zero(a: f.Atom) -> bool:
    """The float zero, the cotangent before any contribution."""
    return isinstance(a, f.Const) and f.is_float(a.ty) and a.value == 0.0


def solid(x: f.Atom, defs: Mapping[str, f.Rhs]) -> bool:
    """True if a value is known not to be null."""
    match defs.get(x.name) if isinstance(x, f.Var) else None:
        case f.ConMake() | f.Build() | f.Map():
            return True
        case f.Op() as op:
            return OPS[op.op].solid(op, lambda atom: solid(atom, defs))
        case _:
            return False


def plus_zero(op: f.Op, defs: Mapping[str, f.Rhs]) -> f.Atom | None:
    """What `x + 0.0` is: x, unless a number in x may be -0.0; of a tangent that is -0.0 where it is absent, the number
    beside it, which is 0.0 there."""
    match op.op, op.args:
        case "add", (f.Var() as x, f.Const(0.0, f.Num()) as zero) if f.is_float(zero.ty) and zeros_positive(zero, defs):
            if elem_of(x.ty) == zero.ty and zeros_positive(x, defs):
                return x
            made = defs.get(x.name)
            return made.args[2] if isinstance(made, f.Op) and made.attr("absent") else None
        case _:
            return None


# ---- scalar rows ----------------------------------------------------------------------------------------------------


def row(op: f.Op) -> f.Atom | None:
    args = op.args
    if all(isinstance(a, f.Const) and not isinstance(a.value, str | tuple) and a.value is not None for a in args):
        return constant(op, [a.value for a in args if isinstance(a, f.Const)])
    if any(map(is_null, args)) and all(is_null(a) or not rank_of(a.ty) for a in args):
        ty = type_of(op)  # only dead code computes with null; there is no array whose shape a loop could have
        return zero_of(ty) if f.is_float(elem_of(ty)) else None
    return unit_law(op)


def unit_law(op: f.Op) -> f.Atom | None:
    """The result of an operation with one constant operand, if it is an operand or a constant."""
    match op.op, op.args:
        case "mul", (x, f.Const(1 | 1.0)) | (f.Const(1 | 1.0), x):
            return x
        case "div", (x, f.Const(1 | 1.0)):
            return x
        case "add", (f.Var() as x, f.Const(0)) | (f.Const(0), f.Var() as x) if not f.is_float(elem_of(x.ty)):
            return x
        case "sub", (f.Var() as x, f.Const(0)) if not f.is_float(elem_of(x.ty)):
            return x
        case "powi", (x, f.Const(1)):
            return x
        case "and", (x, f.Const(True)) | (f.Const(True), x):
            return x
        case "or", (x, f.Const(False)) | (f.Const(False), x):
            return x
        case "and", (f.Const(False), x) | (x, f.Const(False)) if not rank_of(x.ty):
            return FALSE
        case "or", (f.Const(True), x) | (x, f.Const(True)) if not rank_of(x.ty):
            return TRUE
        case "select", (f.Const(bool(choice)), a, b):
            chosen = a if choice else b
            return chosen if chosen.ty == type_of(op) else None
        case _:
            return None


def constant(op: f.Op, values: list) -> f.Const | None:
    """A scalar row on constants: the constant result, or None."""
    if OPS[op.op].fails is Fails.ZERO and isinstance(values[1], int) and values[1] == 0:
        return None  # a run-time error, which must stay
    if op.op in ("shift_left", "shift_right") and not 0 <= values[1] < 64:
        return None
    ty = type_of(op)
    value = wrap(evaluation(op.op, expect_type(f.Num, ty).name)(*values), ty)
    return f.Const(value, ty) if isinstance(value, int | float) else None


def type_of(op: f.Op) -> f.Type:
    return result_type(op.op, tuple([a.ty for a in op.args]), {})


def converted(op: f.Op) -> f.Const | None:
    """A constant as a number of another type."""
    (x, *_), to = op.args, str(op.attr("to"))
    if not isinstance(x, f.Const) or to == "bool" or isinstance(x.value, str) or x.value in (None, ()):
        return None
    if op.op == "bitcast":
        return f.Const(same_bits(x.value, x.ty, f.Num(to)), f.Num(to))
    evaluate = TABLE[to].eval
    assert evaluate is not None
    return f.Const(wrap(evaluate(x.value), f.Num(to)), f.Num(to))
