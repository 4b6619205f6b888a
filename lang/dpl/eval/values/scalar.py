"""Operations on single numbers: row of the table x scalar type -> function of scalars.

scalar("mul", "f32")   rounds to f32 after multiplying; differentiates if a float is Tagged
cast("f64", "i8")      truncates and saturates
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from functools import cache

from dpl.core import ty as t
from dpl.diagnostics import DplError
from dpl.eval.values.active import Active, differentiate
from dpl.eval.values.value import Tagged, number
from dpl.prims import TABLE, elementary, evaluation

# ---- ranges and precision -----------------------------------------------------------------------------------------


def _wrapper(bits: int, signed: bool) -> Callable[[int], int]:
    """A function that wraps integers to this many bits (two's complement if signed)."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    modulus = 1 << bits

    def wrap(x: int) -> int:
        return x if low <= x <= high else (x - low) % modulus + low

    return wrap


def _rounder(format_: str) -> Callable[[float], float]:
    """A function that rounds to a narrower float type."""
    narrow = struct.Struct(format_)

    def rounded(x: float) -> float:
        try:
            return narrow.unpack(narrow.pack(float(x)))[0]
        except OverflowError:
            return math.copysign(math.inf, x)

    return rounded


FIT: dict[str, Callable] = {
    **{name: _wrapper(int(name[1:]), name[0] == "i") for name in t.INTS},
    "f64": float,
    "f32": _rounder("f"),
    "f16": _rounder("e"),
}
"""For each number type, the value of that type nearest to a Python number."""


def fitted(ty: t.Ty, literal: float) -> int | float:
    """A literal as a value of a closed type; of an integer if nothing determines its type."""
    return FIT[ty.name if isinstance(ty, t.Con) else "i64"](literal)


# faster than `eval`
EXACT: dict[str, Callable] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg}
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
CLOSED = ("rem", "max", "min", "clip", "bit_and", "bit_or", "bit_xor", "sign")  # never leave an integer's range


def _plain(name: str, kind: str) -> Callable:
    """A row's meaning on plain numbers, with the result rounded or wrapped to the type `kind`."""
    run = EXACT.get(name) or evaluation(name, kind)
    if kind in ("bool", "f64") or name in CLOSED or (name in elementary.NAMES and kind == "f32"):
        return run
    fit = FIT[kind]
    if TABLE[name].arity == 1:
        return lambda x: fit(run(x))
    return lambda *args: fit(run(*args))


def _dividing(run: Callable) -> Callable:
    def checked(x: int, y: int) -> int:
        try:
            return run(x, y)
        except ZeroDivisionError:
            raise DplError.at("R0701", "division by zero") from None

    return checked


# ---- operations -------------------------------------------------------------------------------------------------


class World:
    """Evaluates derivative rules (`prims.table.Val`) on values of one scalar type, perhaps tagged.  In the rule of a
    conversion, derivatives come from another type, `source`."""

    def __init__(self, kind: str, source: str) -> None:
        self.kind = kind
        self.source = source
        self.integer = int

    def literal(self, value: float, like) -> float | int:
        return int(value) if like.__class__ is int else FIT[self.kind](value)

    def apply(self, name: str, *args):
        match name:
            case "select":
                return args[1] if args[0] else args[2]
            case "to_like":
                return cast("i64" if args[0].__class__ is int else self.source, self.kind)(args[0])
            case "and" | "or" | "not":
                return evaluation(name, self.kind)(*args)
            case _:
                whole = args[0].__class__ is int and all(a.__class__ is int for a in args)
                return scalar(name, "i64" if whole else self.kind)(*args)


@cache
def world(kind: str, source: str = "") -> World:
    return World(kind, source or kind)


@cache
def scalar(name: str, kind: str) -> Callable:
    """The operation of a row at a scalar type.  It differentiates if an operand is Tagged."""
    if name in COMPARISONS:
        return COMPARISONS[name]
    plain = _plain(name, kind)
    if kind not in t.FLOATS:
        return _dividing(plain) if name in ("div", "mod", "quot", "rem") else plain
    rules = TABLE[name].linear
    if rules is None or not any(rules):
        return lambda *args: plain(*map(number, args))
    here = world(kind)
    active = Active(name, plain, rules, here, here)
    sharing = TABLE[name].sharing
    if sharing is not None:
        active.sharing = Active(name, plain, sharing, here, here)
    shape = {1: _unary, 2: _binary}.get(len(rules), _any)
    return shape(plain, active)


def _unary(plain: Callable, active: Active) -> Callable:
    def apply(x):
        return plain(x) if x.__class__ is float else differentiate(active, (x,))

    active.apply = apply
    return apply


def _binary(plain: Callable, active: Active) -> Callable:
    def apply(x, y):
        if x.__class__ is float is y.__class__:
            return plain(x, y)
        return differentiate(active, (x, y)) if isinstance(x, Tagged) or isinstance(y, Tagged) else plain(x, y)

    active.apply = apply
    return apply


def _any(plain: Callable, active: Active) -> Callable:
    def apply(*args):
        if any(isinstance(x, Tagged) for x in args):
            return differentiate(active, args)
        return plain(*args)

    active.apply = apply
    return apply


def _operators() -> None:
    """Gives Tagged numbers the operators of f64, so that derivative rules of arithmetic take them as they are."""
    operators = {"__neg__": scalar("neg", "f64")}
    for name, row in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}.items():
        apply = scalar(row, "f64")
        operators[f"__{name}__"] = apply
        operators[f"__r{name}__"] = lambda x, y, apply=apply: apply(y, x)
    for name, apply in operators.items():
        setattr(Tagged, name, apply)


_operators()


@cache
def cast(source: str, target: str) -> Callable:
    """The conversion between two scalar types.  Between floats it propagates derivatives, rounded to the other
    type."""
    convert = evaluation(target, target)
    if target in t.INTS:
        return lambda x: convert(number(x))
    fit = FIT[target]
    if source not in t.FLOATS:
        return lambda x: fit(float(x))
    if source == target:
        return lambda x: x
    rules = TABLE[target].linear
    assert rules
    return _unary(fit, Active(target, fit, rules, world(target, source), world(source, target)))
