"""Functions with custom derivative rules, applied to a tagged argument.

with_jvp f rule x     forward: apply the rule to x and its tangent; reverse: transpose the rule, which is linear
with_vjp f rule x     reverse: apply the rule's pullback; forward: transpose the pullback
"""

from __future__ import annotations

from collections.abc import Callable

from dpl.eval.derivatives.derive import (
    Call,
    Levels,
    coefficients,
    is_float,
    jet,
    lift_reverse,
    node_at,
    positive,
    primal,
    seeds,
    slope,
    source,
    tangent,
    total,
    zero_of,
    zeros,
)
from dpl.eval.derivatives.tape import Joint, Output, check_linear, sweep
from dpl.eval.values.active import Dual, Node, at_level, primal_at
from dpl.eval.values.scalar import scalar
from dpl.eval.values.structure import check_same_form, leaves, rebuild
from dpl.eval.values.value import Tagged, Value

TANGENT = "the tangent that a rule gives does not fit its value"
COTANGENT = "the cotangent that a rule gives does not fit its argument"


def highest(x: Value) -> int:
    """The highest level among the floats of a value; 0 if none is tagged."""
    return max((leaf.level for leaf in leaves(x) if isinstance(leaf, Tagged)), default=0)


def with_vjp(call: Call, levels: Levels, rule: Value, x: Value) -> Value:
    """Apply a function with a custom reverse rule to the tagged argument `x`."""
    level = highest(x)
    if tag_of(x, level) is not Node:
        return _pushed(pushed_by_vjp, call, levels, rule, x)
    y, pull = call(rule, primal(x, level))
    inner = leaves(y)

    def pull_all(pairs: list) -> list:
        cotangents = [zero_of(leaf) for leaf in inner]
        for index, cotangent in pairs:
            cotangents[index] = positive(cotangent)
        gradient = call(pull, rebuild(y, iter(cotangents)))
        check_same_form(x, gradient, COTANGENT)
        return [g for g, leaf in zip(leaves(gradient), leaves(x), strict=True) if node_at(leaf, level)]

    return _join(level, x, y, pull_all)


def with_jvp(call: Call, levels: Levels, rule: Value, x: Value) -> Value:
    """Apply a function with a custom forward rule to the tagged argument `x`."""
    level = highest(x)
    if tag_of(x, level) is not Node:
        return _pushed(pushed_by_jvp, call, levels, rule, x)
    inside = levels.fresh()
    direction, y, outputs = run_jvp(call, inside, rule, primal(x, level), [0.0] * len(leaves(x)))
    inputs = [d for d, leaf in zip(leaves(direction), leaves(x), strict=True) if node_at(leaf, level)]

    def pull_all(pairs: list) -> list:
        nodes = ((node_at(outputs[index], inside), cotangent) for index, cotangent in pairs)
        found = sweep([(node, cotangent) for node, cotangent in nodes if node])
        return [found.of(node) for node in inputs]

    return _join(level, x, y, pull_all)


def tag_of(x: Value, level: int) -> type:
    return next(type(leaf) for leaf in leaves(x) if isinstance(leaf, Tagged) and leaf.level == level)


def run_jvp(call: Call, inside: int, rule: Value, x: Value, tangents: list) -> tuple[Value, Value, list]:
    """Run a forward rule on tangents that are Nodes of the level `inside`.  Returns (the tangent that went in, y, the
    leaves of the tangent that came out).  The graph in these leaves shows that the rule is linear, and reverse mode
    sweeps it.  Raises an error if the rule is not linear."""
    pairs = zip(leaves(x), tangents, strict=True)
    direction = rebuild(x, iter([source(inside, t) if is_float(a) else zero_of(a) for a, t in pairs]))
    y, dy = call(rule, x, direction)
    check_same_form(y, dy, TANGENT)
    outputs = leaves(dy)
    check_linear([leaf for leaf in outputs if is_float(leaf)], inside)
    return direction, primal(y, inside), outputs


def pushed_by_jvp(call: Call, levels: Levels, rule: Value, x: Value, tangents: list) -> tuple[Value, list]:
    """The value at x and the tangents of its leaves, by a forward rule."""
    inside = levels.fresh()
    _, y, outputs = run_jvp(call, inside, rule, x, tangents)
    return y, [primal_at(leaf, inside) for leaf in outputs]


def pushed_by_vjp(call: Call, levels: Levels, rule: Value, x: Value, tangents: list) -> tuple[Value, list]:
    """The value at x and the tangents of its leaves, by transposing the pullback of a reverse rule (it is linear)."""
    inside = levels.fresh()
    y, pull = call(rule, x)
    zero = lift_reverse(inside, zeros(y))
    cotangent = call(pull, zero)
    check_same_form(x, cotangent, COTANGENT)
    found = sweep(seeds(inside, leaves(cotangent), tangents))
    return y, [found.of(leaf) if isinstance(leaf, Node) else leaf for leaf in leaves(zero)]


def _pushed(push: Callable, call: Call, levels: Levels, rule: Value, x: Value) -> Value:
    """Forward mode through a rule, of first order or in Taylor series: the rule maps x(t) and x'(t) to y'(t)."""
    level = highest(x)
    if tag_of(x, level) is Dual:
        y, tangents = push(call, levels, rule, primal(x, level), [tangent(leaf, level) for leaf in leaves(x)])
        return _with_tangents(level, y, tangents)
    inside = levels.fresh()  # keeps apart values that the rule captured and that depend on the same variable
    given = [coefficients(leaf, level) for leaf in leaves(x)]
    order = max(map(len, given)) - 1
    along = [jet(inside, leaf[:order]) for leaf in given]
    slopes = [jet(inside, slope(leaf)) if is_float(leaf[0]) else leaf[0] for leaf in given]
    y, rates = push(call, levels, rule, rebuild(x, iter(along)), slopes)
    pairs = zip(leaves(y), rates, strict=True)
    return rebuild(y, iter([_joined(level, inside, order, leaf, rate) for leaf, rate in pairs]))


def _joined(level: int, inside: int, order: int, y: Value, rate: Value) -> Value:
    """A leaf of the result as a jet of `level`.  Its dependence through the argument is a jet of level `inside`; the
    coefficients of that jet may themselves be jets of `level`, through variables that the rule captured."""
    if not is_float(y):
        return y
    divide = scalar("div", "f64")
    rates = (c if c is None else divide(c, float(k)) for k, c in enumerate(coefficients(rate, inside), 1))
    given = (primal_at(y, inside), *rates)
    both = [[None] * i + coefficients(c, level) for i, c in enumerate(given) if c is not None]
    return jet(level, [total([row[k] for row in both if k < len(row)]) for k in range(order + 1)])


def _join(level: int, x: Value, y: Value, pull_all: Callable) -> Value:
    """`y`, with its floats made to depend on those of `x` through the rule's `pull_all`."""
    if any(above(leaf, level) for leaf in leaves(y)):
        return _summed(level, x, y, pull_all)
    parents = tuple(node for leaf in leaves(x) if (node := node_at(leaf, level)))
    joint = Node(level, None, Joint(pull_all), parents)

    def output(index: int, leaf: Value) -> Value:
        if not is_float(leaf):
            return leaf
        captured = node_at(leaf, level)
        both = (joint, captured) if captured else (joint,)
        return Node(level, primal_at(leaf, level), Output(index), both)

    return rebuild(y, iter([output(i, leaf) for i, leaf in enumerate(leaves(y))]))


def above(x: Value, level: int) -> bool:
    """True if a float carries a tag of a higher level: the rule captured a variable of a derivative that began
    later."""
    return isinstance(x, Tagged) and x.level > level


def _summed(level: int, x: Value, y: Value, pull_all: Callable) -> Value:
    """As `_join`, for results that depend on a captured variable of a higher level, whose tag must stay outermost:
    y plus the sum of its slopes times the varying part of x (the part whose value is zero)."""
    add, sub, mul = (scalar(name, "f64") for name in ("add", "sub", "mul"))
    varied = [sub(leaf, primal_at(leaf, level)) for leaf in leaves(x) if node_at(leaf, level)]

    def tag(index: int, leaf: Value) -> Value:
        if is_float(leaf):
            for slope, part in zip(pull_all([(index, 1.0)]), varied, strict=True):
                leaf = add(leaf, mul(slope, part))
        return leaf

    return rebuild(y, iter([tag(i, leaf) for i, leaf in enumerate(leaves(y))]))


def _with_tangents(level: int, y: Value, tangents: list) -> Value:
    """`y` with tangents from a rule, added to the tangents that came in through captured variables."""
    add, mul = scalar("add", "f64"), scalar("mul", "f64")

    def tag(leaf: Value, found: Value) -> Value:
        if not is_float(leaf):
            return leaf
        if above(leaf, level) or above(found, level):
            return add(leaf, mul(found, Dual(level, 0.0, 1.0)))
        captured = at_level(leaf, level)
        if isinstance(captured, Dual) and captured.level == level:
            found = add(captured.tangent, found)
        return Dual(level, primal_at(leaf, level), found)

    return rebuild(y, iter([tag(leaf, found) for leaf, found in zip(leaves(y), tangents, strict=True)]))
