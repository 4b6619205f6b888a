"""exp and what is made of it.

x = k log 2 + a - b, where k is whole, a is exact and b small; then e^x = 2^k (1 + a + t) with a small t = r^2 q(r) - b,
r = a - b (Cody and Waite 1980).  1 + a is kept with what its rounding loses.
"""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.steps import Pair, Value, copysign, nearest, polynomial, select, two_to

INF = float("inf")
LOG2_E = 1.4426950408889634
# log 2 in two parts; a product of the first with a k below 2^11 (f32: 2^9) is exact
HIGH = Pair(0.6931471805598903, 0.693145751953125)
LOW = Pair(5.497923018708371e-14, 1.428606765330187e-06)
# outside of these the result is 0 or infinity
LEAST, MOST = Pair(-746.0, -104.0), Pair(710.0, 89.0)


def parts(x: Value, low: Value | None = None) -> tuple[Value, Value, Value]:
    """k, a and t with e^(x + low) = 2^k (1 + a + t)."""
    k = nearest(x * LOG2_E)
    a = x - k * x.pick(HIGH)
    b = k * x.pick(LOW) if low is None else k * x.pick(LOW) - low
    r = a - b
    return k, a, r * r * polynomial(x.pick(c.EXP), r) - b


def sum_of(a: Value | float, b: Value) -> tuple[Value, Value]:
    """a + b and what its rounding loses, where |a| >= |b| or a is 0 (Dekker 1971)."""
    total = a + b
    return total, b - (total - a)


def scaled(p: Value, k: Value) -> Value:
    """2^k p, rounded once, for p from 1/2 to 2."""
    half = nearest(k * 0.5)
    return p * two_to(half) * two_to(k - half)


def clamped(x: Value, least: float, most: float) -> Value:
    """x within bounds; NaN gives the lower one."""
    x = select(x < most, x, most)
    return select(x > least, x, least)


def exp(x: Value) -> Value:
    k, a, t = parts(clamped(x, x.pick(LEAST), x.pick(MOST)))
    one, lost = sum_of(1.0, a)
    return select(x.is_nan, x, scaled(one + (lost + t), k))


def expm1_parts(x: Value, low: Value | None = None) -> tuple[Value, Value]:
    """e^(x + low) - 1 for |x| below 40 (f32: 17), and what rounding loses."""
    k, a, t = parts(x, low)
    power = two_to(k)
    high, lost = sum_of(power - 1.0, power * a)
    return sum_of(high, lost + power * t)


def tanh(x: Value) -> Value:
    """-t / (t + 2) with t = e^(-2 |x|) - 1, and what the roundings of t and t + 2 lose, as 1 / (t + 2) is
    (1 + tanh x) / 2."""
    size = abs(x)
    size = select(size < x.pick(Pair(20.0, 10.0)), size, x.pick(Pair(20.0, 10.0)))
    t, low = expm1_parts(-2.0 * size)
    below = t + 2.0
    lost = t - (below - 2.0)
    quotient = t / below
    y = quotient + (low - quotient * (lost + low)) * (0.5 - 0.5 * quotient)
    return select(x.is_nan, x, copysign(y, x))
