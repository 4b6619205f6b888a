"""Straight-line code over numbers, recorded as a list of steps.

A description is a Python function of `Value`s.  `record` runs it once on symbolic arguments and keeps the steps:

    record("square", lambda x: x * x + 1.0, "f64", 1)      0 argument 0 | 1 mul 0 0 | 2 constant 1.0 | 3 add 1 2

`python.py` makes a Python function of the steps, and the compiler makes LLVM text of them, for single numbers and for
vectors.  No step rounds differently anywhere, and none is fused with another, so the results have the same bits.

Python raises exceptions where IEEE 754 gives infinities or NaN.  A description must therefore not divide by zero, take
the root of a negative number, or convert NaN or an infinity to an integer, not even where the result is not used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from dpl.node import entity, field, node

T = TypeVar("T")


@node
class Pair(Generic[T]):
    """What belongs to f64, and to f32."""

    f64: T
    f32: T


@node
class Step:
    """An operation on earlier steps.  `detail` is the value of a constant, the name of a function, and so on."""

    op: str
    type: str  # f64, f32, int, bool
    args: tuple[int, ...] = ()
    detail: object = None


@entity
class Steps:
    """A function under construction, or complete."""

    name: str
    type: str
    arity: int
    steps: list[Step] = field(default_factory=list)
    known: dict[Step, int] = field(default_factory=dict)
    result: int = -1

    def add(self, op: str, type_: str, *args: Value, detail: object = None) -> Value:
        """The value of a step, which is recorded once."""
        step = Step(op, type_, tuple(arg.number for arg in args), detail)
        number = self.known.setdefault(step, len(self.steps))
        if number == len(self.steps):
            self.steps.append(step)
        return Value(self, number, type_)

    def constant(self, value: float, type_: str) -> Value:
        value = rounded(value) if type_ == "f32" else float(value)
        return self.add("constant", type_, detail=value.hex())  # by its bits: -0.0 is not 0.0

    def uses(self) -> list[int]:
        """How often each step is an argument."""
        counts = [0] * len(self.steps)
        for step in self.steps:
            for arg in step.args:
                counts[arg] += 1
        counts[self.result] += 1
        return counts


def record(name: str, description: Callable[..., Value], type_: str, arity: int) -> Steps:
    """The steps of a description, which is called once, with values that stand for its arguments."""
    steps = Steps(name, type_, arity)
    args = [steps.add("argument", type_, detail=i) for i in range(arity)]
    steps.result = description(*args).number
    return steps


def rounded(x: float) -> float:
    """The nearest number of type f32."""
    return struct.unpack("f", struct.pack("f", x))[0]


class Value:
    """The result of a step, with Python's operators."""

    __slots__ = ("number", "steps", "type")

    def __init__(self, steps: Steps, number: int, type_: str) -> None:
        self.steps = steps
        self.number = number
        self.type = type_

    def of(self, other: Value | float) -> Value:
        return other if isinstance(other, Value) else self.steps.constant(other, self.type)

    def then(self, op: str, *others: Value | float, detail: object = None, type_: str = "") -> Value:
        return self.steps.add(op, type_ or self.type, self, *map(self.of, others), detail=detail)

    def __add__(self, other: Value | float) -> Value:
        return self.then("add", other)

    def __radd__(self, other: float) -> Value:
        return self.of(other).then("add", self)

    def __sub__(self, other: Value | float) -> Value:
        return self.then("sub", other)

    def __rsub__(self, other: float) -> Value:
        return self.of(other).then("sub", self)

    def __mul__(self, other: Value | float) -> Value:
        return self.then("mul", other)

    def __rmul__(self, other: float) -> Value:
        return self.of(other).then("mul", self)

    def __truediv__(self, other: Value | float) -> Value:
        return self.then("div", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.of(other).then("div", self)

    def __neg__(self) -> Value:
        return self.then("neg")

    def __abs__(self) -> Value:
        return self.then("abs")

    def __lt__(self, other: Value | float) -> Value:
        return self.then("lt", other, type_="bool")

    def __le__(self, other: Value | float) -> Value:
        return self.then("le", other, type_="bool")

    def __gt__(self, other: Value | float) -> Value:
        return self.of(other).then("lt", self, type_="bool")

    def __ge__(self, other: Value | float) -> Value:
        return self.of(other).then("le", self, type_="bool")

    def __and__(self, other: Value) -> Value:
        return self.then("and", other)

    def __or__(self, other: Value) -> Value:
        return self.then("or", other)

    def same(self, other: Value | float) -> Value:
        return self.then("eq", other, type_="bool")

    def differs(self, other: Value | float) -> Value:
        return self.then("ne", other, type_="bool")

    @property
    def is_nan(self) -> Value:
        return self.differs(self)

    def pick(self, pair: Pair[T]) -> T:
        """What belongs to the type of this value."""
        return pair.f64 if self.type == "f64" else pair.f32


def select(condition: Value, yes: Value | float, no: Value | float) -> Value:
    """One of two values; both are computed."""
    like = yes if isinstance(yes, Value) else no
    assert isinstance(like, Value)
    return condition.steps.add("select", like.type, condition, like.of(yes), like.of(no))


def sqrt(x: Value) -> Value:
    return x.then("sqrt")


def copysign(x: Value | float, sign: Value) -> Value:
    """The size of `x` with the sign of `sign`."""
    return sign.of(x).then("copysign", sign)


def nearest(x: Value) -> Value:
    """The nearest whole number, for |x| below 2^51 (f32: 2^22); ties to even."""
    return x.then("nearest")


def two_to(k: Value) -> Value:
    """2^k for a whole number k such that the result is normal."""
    return k.then("two_to")


def scaled(p: Value, k: Value) -> Value:
    """2^k p for a whole number k, rounded once, for p from 1/2 to 2."""
    return p.then("scaled", k)


def odd(k: Value) -> Value:
    """Whether a whole number, below 2^51 (f32: 2^22) in size, is odd."""
    return k.then("bit", detail=1, type_="bool")


def second_bit(k: Value) -> Value:
    """Whether a whole number modulo 4 is 2 or 3."""
    return k.then("bit", detail=2, type_="bool")


def split(x: Value) -> tuple[Value, Value]:
    """k and m with x = 2^k m and sqrt(1/2) <= m < sqrt 2, for a positive normal x.  Of other numbers they must not be
    used."""
    pair = x.then("split", type_="pair")
    return pair.then("first", type_=x.type), pair.then("second", type_=x.type)


def entry(table: tuple[float, ...], index: Value) -> Value:
    """An entry of a table, whose index is a whole number."""
    return index.then("entry", detail=table)


def rarely(condition: Value, function: str, args: Sequence[Value], usual: Value) -> Value:
    """The usual value, or where the condition holds, which is rare, that of another described function."""
    return condition.steps.add("rarely", usual.type, condition, usual, *args, detail=function)


def widen(x: Value) -> Value:
    """An f32 as f64."""
    return x.then("widen", type_="f64")


def narrow(x: Value) -> Value:
    """An f64 rounded to f32."""
    return x.then("narrow", type_="f32")


def polynomial(coefficients: Sequence[float], x: Value) -> Value:
    """A polynomial, lowest coefficient first, with a short chain of dependent steps (Estrin's scheme)."""
    terms: list[Value] = [x.of(c) for c in coefficients]
    while len(terms) > 1:
        pairs = [low + high * x for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
        x = x * x
    return terms[0]


def halves(x: Value) -> tuple[Value, Value]:
    """x as the sum of two numbers with half the digits (Veltkamp), whose products are exact."""
    big = x * (x.pick(Pair(2.0**27, 2.0**12)) + 1.0)
    high = big - (big - x)
    return high, x - high


def sum_of(a: Value | float, b: Value) -> tuple[Value, Value]:
    """a + b and what its rounding loses, where |a| >= |b| or a is 0 (Dekker 1971)."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and what its rounding loses (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """a b and what its rounding loses (Dekker 1971)."""
    product = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def clamped(x: Value, least: float, most: float) -> Value:
    """x within bounds; NaN gives the lower one."""
    x = select(x < most, x, most)
    return select(x > least, x, least)


def unbound(x: Value, inside: Value, made: Value) -> Value:
    """What is `made`, by `scaled`, of `inside`, which is `clamped(x, ...)`; NaN if x is.  At the lower bound 0 is made,
    and infinity at the upper one: a branch may do so for all x that are not within."""
    return x.then("unbound", inside, made)
