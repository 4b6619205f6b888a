"""Taylor mode, one operation at a time: power series whose coefficients are computed on demand.

    y = exp x     y[0] = exp x[0];   y[k] = d[k - 1] / k,  where d = x' * y     (the row's derivative rule)

A derivative rule is read as an equation between series.  It may mention the series that it defines, because it uses
only earlier coefficients.  Other rows that it mentions have rules too (`sin` and `cos` lead to each other, a power to
the next lower one), so a rule is all that a row needs.  A coefficient None is a symbolic zero: it contributes nothing,
like a missing tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Protocol

from dpl.eval.values.value import Tagged, Value
from dpl.prims import TABLE, contribution


class World(Protocol):
    """Evaluates derivative rules on coefficients (implemented in scalar.py)."""

    kind: str

    def literal(self, value: float, like: Value) -> Value: ...

    def apply(self, name: str, *args: Value) -> Value: ...


class Jet(Tagged):
    """A number that depends on the variable of a `taylor`, as its Taylor coefficients: the number itself first."""

    __slots__ = ("coefficients",)

    def __init__(self, level: int, coefficients: Sequence[Value | None]) -> None:
        self.level = level
        self.primal = coefficients[0]
        self.coefficients = coefficients

    @property
    def order(self) -> int:
        return len(self.coefficients) - 1


class Series:
    """A lazy power series.  `later(k)` computes coefficient k once those before it are known."""

    __slots__ = ("known", "later")

    def __init__(self, known: list, later: Callable[[int], Value | None]) -> None:
        self.known = known
        self.later = later

    def __getitem__(self, k: int) -> Value | None:
        while len(self.known) <= k:
            self.known.append(self.later(len(self.known)))
        return self.known[k]


def nothing(_: int) -> None:
    """The coefficient None, a symbolic zero."""


def series(x: Value | Series) -> Series:
    """The operand as a series; a number becomes a constant series."""
    return x if isinstance(x, Series) else Series([x], nothing)


def first(x: Value | Series) -> Value:
    return x[0] if isinstance(x, Series) else x


class SeriesWorld:
    """Evaluates derivative rules on series.  `plain` is the world of their coefficients."""

    def __init__(self, plain: World) -> None:
        self.plain = plain
        self.integer = int
        self.rows: dict[tuple, Series] = {}

    def literal(self, value: float, like: Value | Series) -> Value:
        return self.plain.literal(value, first(like))

    def apply(self, name: str, *args: Value | Series) -> Value | Series:
        if not any(isinstance(a, Series) for a in args):
            return self.plain.apply(name, *args)
        match name:
            case "add" | "sub" | "mul" | "div":
                return getattr(self, name)(*map(series, args))
            case "neg":
                return self.each(series(args[0]), lambda c, k: self.plain.apply("neg", c))
            case "to_like":
                return self.each(series(args[0]), lambda c, k: self.plain.apply("to_like", c, c))
            case "select":
                return args[1] if args[0] else args[2]
            case _ if not any(TABLE[name].linear or ()):
                return self.plain.apply(name, *map(first, args))
            case _:
                return self.row(name, args)

    # ---- arithmetic -----------------------------------------------------------------------------------------------

    def each(self, x: Series, write: Callable[[Value, int], Value]) -> Series:
        """A series whose coefficients are made one by one of those of another."""

        def later(k: int) -> Value | None:
            c = x[k]
            return None if c is None else write(c, k)

        return Series([], later)

    def number(self, k: int) -> Value:
        """The constant `k`."""
        return self.plain.literal(k, 0.0)

    def total(self, parts: Sequence[Value | None]) -> Value | None:
        """The sum of the parts that are there; None, a zero, if there is none."""
        there = [part for part in parts if part is not None]
        return reduce(lambda a, b: self.plain.apply("add", a, b), there) if there else None

    def add(self, x: Series, y: Series) -> Series:
        return Series([], lambda k: self.total((x[k], y[k])))

    def sub(self, x: Series, y: Series) -> Series:
        return Series([], lambda k: self.minus(x[k], y[k]))

    def minus(self, a: Value | None, b: Value | None) -> Value | None:
        if b is None:
            return a
        return self.plain.apply("neg", b) if a is None else self.plain.apply("sub", a, b)

    def products(self, x: Series, y: Series, start: int, end: int) -> Value | None:
        """The sum of x[j] y[end - j], from j = start."""
        pairs = ((x[j], y[end - j]) for j in range(start, end + 1))
        return self.total([self.plain.apply("mul", a, b) for a, b in pairs if a is not None and b is not None])

    def mul(self, x: Series, y: Series) -> Series:
        """The product of series: convolution of the coefficients."""
        return Series([], lambda k: self.products(x, y, 0, k))

    def div(self, x: Series, y: Series) -> Series:
        """The quotient: coefficient k follows from those before it (Griewank and Walther 2008, ch. 13)."""

        def later(k: int) -> Value | None:
            rest = self.minus(x[k], self.products(y, made, 1, k))
            return None if rest is None else self.plain.apply("div", rest, y[0])

        made = Series([], later)
        return made

    # ---- rows -----------------------------------------------------------------------------------------------------

    def row(self, name: str, args: tuple[Value | Series, ...]) -> Series:
        """Apply a row of the table.  The same row with the same operands returns the same series."""
        key = (name, *args)
        if key not in self.rows:
            self.rows[key] = self.solved(TABLE[name].linear or (), args, self.plain.apply(name, *map(first, args)))
        return self.rows[key]

    def solved(self, rules: Sequence[Callable | None], args: tuple[Value | Series, ...], start: Value) -> Series:
        """The series that starts with `start` and satisfies the derivative rules of a row."""

        derivative: list[Series] = []  # it depends on what is made here, so it is added when it is asked for

        def later(k: int) -> Value | None:
            if not derivative:
                parts = [
                    series(contribution(self, rule, self.rate(arg), args, made))
                    for rule, arg in zip(rules, args, strict=True)
                    if rule and isinstance(arg, Series)
                ]
                derivative.append(reduce(self.add, parts))
            slope = derivative[0][k - 1]
            return None if slope is None else self.plain.apply("div", slope, self.number(k))

        made = Series([start], later)
        return made

    def rate(self, x: Series) -> Series:
        """The derivative of a series."""

        def later(k: int) -> Value | None:
            c = x[k + 1]
            return None if c is None else self.plain.apply("mul", c, self.number(k + 1))

        return Series([], later)


def solved(rules: Sequence[Callable | None], world: World, args: tuple, start: Value, level: int) -> Jet:
    """The result of an operation with value `start`.  At least one operand is a jet of `level`; the others do not
    depend on this level."""
    order = min(arg.order for arg in args if is_jet(arg, level))
    given = tuple([Series(list(arg.coefficients), nothing) if is_jet(arg, level) else arg for arg in args])
    made = SeriesWorld(world).solved(rules, given, start)
    return Jet(level, [made[k] for k in range(order + 1)])


def is_jet(x: Value, level: int) -> bool:
    return isinstance(x, Jet) and x.level == level
