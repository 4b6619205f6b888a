"""exp and what is made of it.

x = k log 2 + a - b, where k is whole, a is exact and b small; then e^x = 2^k (1 + a + t) with a small t = r^2 q(r) - b,
r = a - b (Cody and Waite 1980).  1 + a is kept with what its rounding loses.
"""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.steps import (
    Pair,
    Value,
    clamped,
    copysign,
    nearest,
    polynomial,
    scaled,
    select,
    sum_of,
    two_product,
    two_to,
    unbound,
)

INF = float("inf")
LOG_2, LOG2_E = 0.6931471805599453, 1.4426950408889634
# log 2 in two parts; a product of the first with a k below 2^11 (f32: 2^9) is exact
HIGH = Pair(0.6931471805598903, 0.693145751953125)
LOW = Pair(5.497923018708371e-14, 1.428606765330187e-06)
# the same for exp2: a product of the first with 20 (f32: 11) bits is exact
LOG2_HIGH = Pair(0.6931471804855391, 0.693115234375)
LOG2_LOW = Pair(7.440617110012397e-11, 3.194618329871446e-05)
SMALL = Pair(2.0**-600, 2.0**-60)  # up to here expm1 x and log1p x are x
# outside of these the result is 0 or infinity; at the least one it is 2^k p with a k for which `scaled` gives 0
LEAST, MOST = Pair(-746.0, -105.0), Pair(710.0, 89.0)


def parts(x: Value, low: Value | None = None) -> tuple[Value, Value, Value]:
    """k, a and t with e^(x + low) = 2^k (1 + a + t)."""
    k = nearest(x * LOG2_E)
    a = x - k * x.pick(HIGH)
    b = k * x.pick(LOW) if low is None else k * x.pick(LOW) - low
    r = a - b
    return k, a, r * r * polynomial(x.pick(c.EXP), r) - b


def exp(x: Value) -> Value:
    """e^x = 2^k e^r with x = k log 2 + r, where e^r is a sum of a number and a small rest."""
    inside = clamped(x, x.pick(LEAST), x.pick(MOST))
    k, a, t = parts(inside)
    one, lost = sum_of(1.0, a)
    return unbound(x, inside, scaled(one + (lost + t), k))


def bell(x: Value) -> Value:
    """e^(-x^2), where the square has all its digits."""
    near = clamped(abs(x), 0.0, x.pick(Pair(28.0, 10.5)))
    square, lost = two_product(near, near)
    k, a, t = parts(-square, -lost)
    one, low = sum_of(1.0, a)
    return select(x.is_nan, x, scaled(one + (low + t), k))


def exp2(x: Value) -> Value:
    inside = clamped(x, *x.pick(Pair((-1080.0, 1025.0), (-155.0, 129.0))))
    k, p = exp2_parts(inside, None)
    return unbound(x, inside, scaled(p, k))


def exp2_parts(x: Value, low: Value | None) -> tuple[Value, Value]:
    """k and p with 2^(x + low) = 2^k p."""
    k = nearest(x)
    r = x - k
    unit = x.pick(Pair(2.0**20, 2.0**11))
    first = nearest(r * unit) * (1.0 / unit)  # so few digits that its product with LOG2_HIGH is exact
    a = first * x.pick(LOG2_HIGH)
    rest = (r - first) if low is None else (r - first) + low
    b = first * x.pick(LOG2_LOW) + rest * LOG_2
    s = a + b
    one, lost = sum_of(1.0, a)
    return k, one + (lost + (b + s * s * polynomial(x.pick(c.EXP), s)))


def expm1_parts(x: Value, low: Value | None = None) -> tuple[Value, Value]:
    """e^(x + low) - 1 for |x| below 40 (f32: 17), and what rounding loses."""
    k, a, t = parts(x, low)
    power = two_to(k)
    high, lost = sum_of(power - 1.0, power * a)
    return sum_of(high, lost + power * t)


def expm1(x: Value) -> Value:
    k, a, t = parts(clamped(x, x.pick(Pair(-40.0, -20.0)), x.pick(MOST)))
    power = two_to(k - 1.0)
    high, lost = sum_of(power - 0.5, power * a)
    y = high + (lost + power * t)
    return select(x.is_nan | (abs(x) < x.pick(SMALL)), x, y + y)


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


def quarter(x: Value) -> tuple[Value, Value, Value]:
    """e^|x| / 4 as a sum of two, and e^-|x| / 4."""
    k, a, t = parts(clamped(abs(x), 0.0, x.pick(Pair(710.5, 89.5))))
    one, lost = sum_of(1.0, a)
    power = two_to(k - 2.0)
    high, low = power * one, power * (lost + t)
    return high, low, 0.0625 / (high + low)


def sinh(x: Value) -> Value:
    size = abs(x)
    high, low, other = quarter(x)
    large = high + (low - other)
    near = select(size < 1.0, size, 1.0)
    z = near * near
    y = select(size < 1.0, near + near * z * polynomial(x.pick(c.SINH), z), large + large)
    return select(x.is_nan, x, copysign(y, x))


def cosh(x: Value) -> Value:
    high, low, other = quarter(x)
    y = high + (low + other)
    return select(x.is_nan, x, y + y)


def sigmoid(x: Value) -> Value:
    """1 / (1 + e) or e / (1 + e) with e = e^-|x|, and what the rounding of 1 + e loses."""
    e = exp(-abs(x))
    below, lost = sum_of(1.0, e)
    quotient = select(x >= 0.0, e.of(1.0), e) / below
    return quotient - quotient * lost * select(x >= 0.0, quotient, 1.0 - quotient)


def sech2(x: Value) -> Value:
    e = exp(-2.0 * abs(x))
    below = 1.0 + e
    return 4.0 * e / (below * below)


def odds(a: Value, b: Value) -> Value:
    """e^(-|a - b|), with the digits that the difference loses; 1 for equal infinities."""
    difference = a - b
    near = abs(difference) < a.pick(Pair(800.0, 120.0))
    d = select(near, difference, 0.0)
    back = d - a
    lost = select(near, (a - (d - back)) - (b + back), 0.0)
    k, first, t = parts(-abs(d), select(d < 0.0, lost, -lost))
    one, more = sum_of(1.0, first)
    known = near | ((a >= b) & (a <= b))
    return select(known, scaled(one + (more + t), k), select(difference.is_nan, difference, 0.0))


def share(a: Value, b: Value) -> Value:
    e = odds(a, b)
    return select(a >= b, e.of(1.0), e) / (1.0 + e)


def overlap(a: Value, b: Value) -> Value:
    e = odds(a, b)
    below = 1.0 + e
    return e / (below * below)
