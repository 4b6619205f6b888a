"""`jvp`, `vjp` and functions with rules of their own, between a function's argument and its result.

    jvp f x dx:   lift_forward x dx  ->  f  ->  split_forward
    vjp f x:      lift_reverse x     ->  f  ->  primal, Builtin pullback

Arguments and results are any data; their floats are tagged and untagged as lists of leaves (structure.py), and
functions of the program are called through `call`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from dpl.diagnostics import DplError
from dpl.eval.active import Dual, Node, at_level, primal_at
from dpl.eval.scalar import scalar
from dpl.eval.structure import check_same_form, leaves, rebuild
from dpl.eval.tape import Joint, Output, check_linear, sweep
from dpl.eval.value import FUNCTIONS, Builtin, Tagged, Value, number

Call = Callable[..., Value]


class Levels:
    """The supply of levels of one run."""

    def __init__(self) -> None:
        self._next = count(1)

    def fresh(self) -> int:
        return next(self._next)


def is_float(leaf: Value) -> bool:
    return leaf.__class__ is float or isinstance(leaf, Tagged)


def zero_of(leaf: Value) -> Value:
    """The zero of a leaf's type."""
    if is_float(leaf):
        return 0.0
    if isinstance(leaf, FUNCTIONS):
        raise DplError.at("R0505", "a function has no derivative", helps=("differentiate what the function returns",))
    return type(leaf)()


def zeros(value: Value) -> Value:
    return rebuild(value, map(zero_of, leaves(value)))


def node_at(leaf: Value, level: int) -> Node | None:
    leaf = at_level(leaf, level)
    return leaf if isinstance(leaf, Node) and leaf.level == level else None


def primal(value: Value, level: int) -> Value:
    return rebuild(value, (primal_at(leaf, level) for leaf in leaves(value)))


def stop_grad(value: Value) -> Value:
    """The value without any tag, of whatever level."""
    if isinstance(value, FUNCTIONS):
        return value
    return rebuild(value, map(number, leaves(value)))


# ---- forward ------------------------------------------------------------------------------------------------------


def lift_forward(level: int, x: Value, dx: Value) -> Value:
    check_same_form(x, dx, "the direction of a derivative does not fit its point")
    pairs = zip(leaves(x), leaves(dx), strict=True)
    return rebuild(x, iter([Dual(level, a, d) if is_float(a) else a for a, d in pairs]))


def split_forward(level: int, y: Value) -> tuple[Value, Value]:
    """Value and tangent."""
    found = leaves(y)
    return primal(y, level), rebuild(y, (_tangent(leaf, level) for leaf in found))


def _tangent(leaf: Value, level: int) -> Value:
    leaf = at_level(leaf, level)
    return leaf.tangent if isinstance(leaf, Dual) and leaf.level == level else zero_of(leaf)


# ---- reverse ------------------------------------------------------------------------------------------------------


def source(level: int, x: Value) -> Node:
    """A float on which others depend: a node without a past."""
    return Node(level, x, None, ())


def lift_reverse(level: int, x: Value) -> Value:
    return rebuild(x, iter([source(level, leaf) if is_float(leaf) else leaf for leaf in leaves(x)]))


def pullback(level: int, x: Value, y: Value) -> Builtin:
    """From cotangents of `y` to those of `x`; both as they were inside, tagged."""

    def pull(cotangent: Value) -> Value:
        check_same_form(y, cotangent, "the cotangent does not fit the result")
        found = sweep(seeds(level, leaves(y), leaves(cotangent)))
        return rebuild(x, (found.of(leaf) if isinstance(leaf, Node) else zero_of(leaf) for leaf in leaves(x)))

    return Builtin(pull)


def seeds(level: int, outputs: list, cotangents: list) -> list:
    pairs = ((node_at(leaf, level), cotangent) for leaf, cotangent in zip(outputs, cotangents, strict=True))
    return [(node, cotangent) for node, cotangent in pairs if node]


# ---- functions with their own rules -------------------------------------------------------------------------------


def highest(x: Value) -> int:
    """The highest level among the floats of a value, 0 if none is tagged."""
    return max((leaf.level for leaf in leaves(x) if isinstance(leaf, Tagged)), default=0)


def is_dual(x: Value, level: int) -> bool:
    return any(isinstance(leaf, Dual) and leaf.level == level for leaf in leaves(x))


def with_vjp(call: Call, levels: Levels, rule: Value, x: Value) -> Value:
    """A function with its own reverse rule, at an argument that is tagged.  Forward mode transposes the rule."""
    level = highest(x)
    y, pull = call(rule, primal(x, level))
    if not is_dual(x, level):
        inner = leaves(y)

        def pull_all(pairs: list) -> list:
            cotangents = [zero_of(leaf) for leaf in inner]
            for index, cotangent in pairs:
                cotangents[index] = cotangent
            gradient = leaves(call(pull, rebuild(y, iter(cotangents))))
            return [g for g, leaf in zip(gradient, leaves(x), strict=True) if node_at(leaf, level)]

        return _join(level, x, y, pull_all)
    inside = levels.fresh()
    zero = lift_reverse(inside, zeros(y))
    gradient = call(pull, zero)
    tangents = [_tangent(leaf, level) for leaf in leaves(x)]
    found = sweep(seeds(inside, leaves(gradient), tangents))
    return _with_tangents(level, y, [found.of(leaf) if isinstance(leaf, Node) else leaf for leaf in leaves(zero)])


def with_jvp(call: Call, levels: Levels, rule: Value, x: Value) -> Value:
    """A function with its own forward rule, at an argument that is tagged.  The rule runs on a tangent of a level of
    its own; the graph that this leaves shows whether it is linear, and is swept for reverse mode."""
    level, inside = highest(x), levels.fresh()
    direction = rebuild(x, iter([source(inside, _tangent(a, level)) if is_float(a) else zero_of(a) for a in leaves(x)]))
    y, dy = call(rule, primal(x, level), direction)
    outputs = leaves(dy)
    check_linear([leaf for leaf in outputs if is_float(leaf)], inside)
    y = primal(y, inside)
    if is_dual(x, level):
        return _with_tangents(level, y, [primal_at(leaf, inside) for leaf in outputs])
    inputs = [d for d, leaf in zip(leaves(direction), leaves(x), strict=True) if node_at(leaf, level)]

    def pull_all(pairs: list) -> list:
        nodes = ((node_at(outputs[index], inside), cotangent) for index, cotangent in pairs)
        found = sweep([(node, cotangent) for node, cotangent in nodes if node])
        return [found.of(node) for node in inputs]

    return _join(level, x, y, pull_all)


def _join(level: int, x: Value, y: Value, pull_all: Callable) -> Value:
    """`y`, its floats depending on those of `x` by a rule."""
    parents = tuple(node for leaf in leaves(x) if (node := node_at(leaf, level)))
    joint = Node(level, None, Joint(pull_all), parents)

    def output(index: int, leaf: Value) -> Value:
        if not is_float(leaf):
            return leaf
        captured = node_at(leaf, level)
        both = (joint, captured) if captured else (joint,)
        return Node(level, primal_at(leaf, level), Output(index), both)

    return rebuild(y, iter([output(i, leaf) for i, leaf in enumerate(leaves(y))]))


def _with_tangents(level: int, y: Value, tangents: list) -> Value:
    """`y` with tangents from a rule, added to what flowed in through captured variables."""

    def tag(leaf: Value, tangent: Value) -> Value:
        if not is_float(leaf):
            return leaf
        captured = at_level(leaf, level)
        if isinstance(captured, Dual) and captured.level == level:
            tangent = scalar("add", "f64")(captured.tangent, tangent)
        return Dual(level, primal_at(leaf, level), tangent)

    return rebuild(y, iter([tag(leaf, tangent) for leaf, tangent in zip(leaves(y), tangents, strict=True)]))
