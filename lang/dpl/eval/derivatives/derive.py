"""`jvp`, `taylor` and `vjp`: tagging a function's argument and untagging its result.

    jvp f x dx:   lift_forward x dx  ->  f  ->  split_forward
    taylor n f x: lift_jet x         ->  f  ->  split_jet
    vjp f x:      lift_reverse x     ->  f  ->  primal, Builtin pullback

Arguments and results may be any data; their floats are tagged and untagged as lists of leaves (structure.py).
Functions of the program are called through `call`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import count

from dpl.diagnostics import DplError
from dpl.eval.derivatives.tape import Cotangents, sweep
from dpl.eval.values.active import Dual, Node, at_level, primal_at
from dpl.eval.values.scalar import scalar
from dpl.eval.values.series import Jet
from dpl.eval.values.structure import check_same_form, leaves, rebuild
from dpl.eval.values.value import FUNCTIONS, Array, Builtin, Tagged, Value, number

Call = Callable[..., Value]


class Levels:
    """Supplies the levels of one run, in ascending order."""

    def __init__(self) -> None:
        self._next = count(1)

    def fresh(self) -> int:
        """A level above all earlier ones."""
        return next(self._next)


def is_float(leaf: Value) -> bool:
    """True for what has a derivative: a float, or a tagged one."""
    return leaf.__class__ is float or isinstance(leaf, Tagged)


def zero_of(leaf: Value) -> Value:
    """The zero of a leaf's type.  Raises R0505 for a function."""
    if is_float(leaf):
        return 0.0
    if isinstance(leaf, FUNCTIONS):
        raise DplError.at("R0505", "a function has no derivative", helps=("differentiate what the function returns",))
    return type(leaf)()


def zeros(value: Value) -> Value:
    """A value of the same form, with a zero for each number."""
    return rebuild(value, map(zero_of, leaves(value)))


def node_at(leaf: Value, level: int) -> Node | None:
    """The leaf's node on the tape of this level, or None if it does not depend on that level's input."""
    leaf = at_level(leaf, level)
    return leaf if isinstance(leaf, Node) and leaf.level == level else None


def primal(value: Value, level: int) -> Value:
    """A value without the tags of this level."""
    return rebuild(value, (primal_at(leaf, level) for leaf in leaves(value)))


def stop_grad(value: Value) -> Value:
    """The value without tags of any level."""
    if isinstance(value, FUNCTIONS):
        return value
    return rebuild(value, map(number, leaves(value)))


# ---- forward ------------------------------------------------------------------------------------------------------


def lift_forward(level: int, x: Value, dx: Value) -> Value:
    """The point, whose floats carry their tangents.  Raises an error if the direction has another form."""
    check_same_form(x, dx, "the direction of a derivative does not fit its point")
    pairs = zip(leaves(x), leaves(dx), strict=True)
    return rebuild(x, iter([Dual(level, a, d) if is_float(a) else a for a, d in pairs]))


def split_forward(level: int, y: Value) -> tuple[Value, Value]:
    """Value and tangent."""
    found = leaves(y)
    return primal(y, level), rebuild(y, (tangent(leaf, level) for leaf in found))


def tangent(leaf: Value, level: int) -> Value:
    """A leaf's tangent at this level; zero if it does not depend on the input."""
    leaf = at_level(leaf, level)
    return positive(leaf.tangent) if isinstance(leaf, Dual) and leaf.level == level else zero_of(leaf)


def positive(x: Value) -> Value:
    """The number, or 0.0 for -0.0: the zeros of a derivative are positive, whichever of them are symbolic."""
    return scalar("add", "f64")(x, 0.0)


# ---- forward, in series -------------------------------------------------------------------------------------------


def lift_jet(level: int, x: Value, order: int) -> Value:
    """The variable of a `taylor`, with coefficients x, 1, 0, ..."""
    return jet(level, [x, 1.0, *[None] * (order - 1)][: order + 1])


def jet(level: int, found: list) -> Value:
    """A number with these coefficients; None stands for zero."""
    return found[0] if all(c is None for c in found[1:]) else Jet(level, found)


def coefficients(leaf: Value, level: int) -> list:
    """A leaf's Taylor coefficients at this level, the value first.  Those that are missing at the end are zero."""
    leaf = at_level(leaf, level)
    return list(leaf.coefficients) if isinstance(leaf, Jet) and leaf.level == level else [leaf]


def shown(found: list) -> list:
    """Coefficients as a program sees them."""
    return [found[0], *[c if c is None else positive(c) for c in found[1:]]]


def slope(found: list) -> list:
    """The coefficients of the derivative of a series."""
    slopes = [c if c is None else scale(c, float(k)) for k, c in enumerate(found[1:], 1)]
    return [0.0 if slopes[:1] in ([], [None]) else slopes[0], *slopes[1:]]


def scale(x: Value, by: float) -> Value:
    return scalar("mul", "f64")(x, by)


def total(parts: list) -> Value:
    """The sum of the parts that are there; None, a zero, if there is none."""
    there = [part for part in parts if part is not None]
    return reduce(scalar("add", "f64"), there) if there else None


def split_jet(level: int, y: Value, order: int) -> Array:
    """The coefficients of the result, as an array of `order + 1` values of its form: the value first."""
    found = leaves(y)
    series = [shown(coefficients(leaf, level)) if is_float(leaf) else [leaf] for leaf in found]
    rows = [
        rebuild(y, iter([known[k] if k < len(known) and known[k] is not None else zero_of(leaf)
                         for leaf, known in zip(found, series, strict=True)]))
        for k in range(order + 1)
    ]  # fmt: skip
    if isinstance(y, Array):
        return Array((order + 1, *y.shape), [item for row in rows for item in row.data])
    return Array((order + 1,), rows)


# ---- reverse ------------------------------------------------------------------------------------------------------


def source(level: int, x: Value) -> Node:
    """A float on which others depend: a node without parents."""
    return Node(level, x, None, ())


def lift_reverse(level: int, x: Value) -> Value:
    """The point, each of whose floats is an input of this level's tape."""
    return rebuild(x, iter([source(level, leaf) if is_float(leaf) else leaf for leaf in leaves(x)]))


class Pullback(Builtin):
    """The function from cotangents of `y` to cotangents of `x`; both values are tagged at `level`."""

    __slots__ = ("level", "x", "y")

    def __init__(self, run: Callable[[Value], Value], level: int, x: Value, y: Value) -> None:
        super().__init__(run)
        self.level = level
        self.x = x
        self.y = y

    def seeds(self, cotangent: Value) -> list:
        return seeded(self.level, self.y, cotangent)

    def result(self, found: Cotangents) -> Value:
        return gathered(self.x, found)


def pullback(level: int, x: Value, y: Value) -> Pullback:
    """The function from cotangents of `y` to cotangents of `x`; both values are still tagged."""

    def pull(cotangent: Value) -> Value:
        return gathered(x, sweep(seeded(level, y, cotangent)))

    return Pullback(pull, level, x, y)


def seeded(level: int, y: Value, cotangent: Value) -> list:
    """The nodes of `y`, each with its cotangent: where a sweep starts."""
    check_same_form(y, cotangent, "the cotangent does not fit the result")
    return seeds(level, leaves(y), leaves(cotangent))


def gathered(x: Value, found: Cotangents) -> Value:
    """The cotangent of `x` after a sweep."""
    return rebuild(x, (positive(found.of(leaf)) if isinstance(leaf, Node) else zero_of(leaf) for leaf in leaves(x)))


def seeds(level: int, outputs: list, cotangents: list) -> list:
    """The outputs that are on this level's tape, each with its cotangent: where a reverse sweep begins."""
    pairs = ((node_at(leaf, level), cotangent) for leaf, cotangent in zip(outputs, cotangents, strict=True))
    return [(node, cotangent) for node, cotangent in pairs if node]
