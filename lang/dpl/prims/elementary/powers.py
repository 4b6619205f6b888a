"""pow and cbrt."""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.exponential import exp2_parts, scaled
from dpl.prims.elementary.logarithm import normal_parts
from dpl.prims.elementary.steps import (
    Value,
    clamped,
    copysign,
    halves,
    narrow,
    nearest,
    polynomial,
    select,
    sqrt,
    sum_of,
    two_product,
    two_to,
    widen,
)

INF, NAN = float("inf"), float("nan")
THIRD, THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17
LOG2_E2, LOG2_E2_LOW = 2.8853900817779268, 4.0710547481862066e-17  # 2 / log 2
ROOTS = (0.7937005259840998, 1.0, 1.2599210498948732)  # cube roots of 1/2, 1, 2


def cbrt(x: Value) -> Value:
    """One step of Halley's method from a number with half the digits, whose square is exact."""
    k, m = normal_parts(abs(x))
    third = nearest(k * (1.0 / 3.0))
    left = k - 3.0 * third
    root = select(left < -0.5, x.of(ROOTS[0]), select(left < 0.5, x.of(ROOTS[1]), ROOTS[2]))
    t, _ = halves(root * polynomial(x.pick(c.CBRT), m))
    r = m * two_to(left) / (t * t)
    y = t + t * ((r - t) / (t + t + r))
    y = copysign(y * two_to(third), x)
    return select(x.same(0.0) | x.is_nan | abs(x).same(INF), x, y)


def log2_parts(m: Value) -> tuple[Value, Value]:
    """log2 m, with twice the digits: 2 / log 2 (s + s (z / 3 + z^2 Q z)), s = (m - 1) / (m + 1), z = s^2."""
    f = m - 1.0
    below, below_low = sum_of(2.0, f)
    s = f / below
    product, lost = two_product(s, below)
    s_low = (((f - product) - lost) - s * below_low) / below
    z, z_low = two_product(s, s)
    z_low = z_low + 2.0 * s * s_low
    w, w_low = two_product(z, m.of(THIRD))
    w_low = w_low + (z * THIRD_LOW + z_low * THIRD)
    u, u_low = sum_of(w, z * z * polynomial(c.POW, z))
    u_low = u_low + w_low
    more, more_low = two_product(s, u)
    total, low = sum_of(s, more)
    low = low + ((more_low + (s * u_low + s_low * u)) + s_low)
    y, y_low = two_product(total, m.of(LOG2_E2))
    return y, y_low + (total * LOG2_E2_LOW + low * LOG2_E2)


def power_near(size: Value, y: Value) -> Value:
    """size^y for a positive finite size and a finite y."""
    k, m = normal_parts(size)
    high, low = log2_parts(m)
    high, lost = sum_of(k, high)
    low = lost + low
    high, lost = sum_of(high, low)
    y = clamped(y, -(2.0**66), 2.0**66)
    product, more = two_product(y, high)
    product_ = clamped(product, -1080.0, 1025.0)
    k, p = exp2_parts(product_, select(product_.same(product), more + y * lost, 0.0))
    return scaled(p, k)


def arithmetic(x: Value, y: Value, other: Value) -> Value:
    """x^y where arithmetic gives it, so that compilers may use that; `other` for other exponents, and at 0 and infinity
    where they differ."""
    above = x > 0.0
    inverse = 1.0 / select(x.same(0.0), 1.0, x)
    product = select(y.same(2.0), x * x, select(y.same(3.0), x * x * x, select(y.same(4.0), (x * x) * (x * x), other)))
    root = select(above & y.same(0.5), sqrt(select(above, x, 1.0)), product)
    return select(y.same(1.0), x, select(y.same(-1.0) & x.differs(0.0), inverse, root))


def pow(x: Value, y: Value) -> Value:
    if x.type == "f32":
        return narrow(pow(widen(x), widen(y)))
    size = abs(x)
    usual = (size > 0.0) & (size < INF) & (abs(y) < INF)
    result = power_near(select(usual, size, 1.0), select(usual, y, 1.0))
    grows = (size > 1.0) & (y > 0.0) | (size < 1.0) & (y < 0.0)
    extreme = select(grows, x.of(INF), 0.0)  # of 0 and infinity
    extreme = select(size.same(1.0), x.of(1.0), extreme)
    result = select(usual, result, extreme)
    near = select(abs(y) < 2.0**54, y, 0.0)
    part = near - 2.0**32 * nearest(near * 2.0**-32)  # as odd as y
    whole = nearest(part).same(part) | (abs(y) >= 2.0**54)
    odd = whole & nearest(0.5 * part).differs(0.5 * part)
    negative = copysign(1.0, x) < 0.0
    result = select(negative & odd, -result, result)
    result = select((x < 0.0) & (size < INF) & (abs(y) < INF), select(whole, result, NAN), result)
    result = select(x.is_nan | y.is_nan, x + y, result)
    result = arithmetic(x, y, result)
    return select(x.same(1.0) | y.same(0.0), x.of(1.0), result)
