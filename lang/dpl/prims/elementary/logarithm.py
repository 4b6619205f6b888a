"""log and what is made of it.

x = 2^k m with m from sqrt(1/2) to sqrt 2, f = m - 1, s = f / (2 + f); then log m = log ((1 + s) / (1 - s)) =
2 s + s^3 R(s^2), written as f - (f^2 / 2 - s (f^2 / 2 + s^2 R)), because f is exact (Ng 1993, in fdlibm).
"""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.exponential import SMALL, exp
from dpl.prims.elementary.steps import (
    Pair,
    Value,
    copysign,
    halves,
    polynomial,
    select,
    split,
    sqrt,
    sum_of,
    two_product,
    two_sum,
    two_to,
)

INF, NAN = float("inf"), float("nan")
# log 2 in two parts; a product of the first with an exponent is exact
HIGH, LOW = Pair(0.6931471803691238, 0.693145751953125), Pair(1.9082149292705877e-10, 1.428606765330187e-06)
TINY = Pair(2.0**-1022, 2.0**-126)  # the least normal number
# in two parts; products of the first with a number of half the digits, or an exponent, are exact
LOG2_E = Pair((1.4426950216293335, 1.9259629911266175e-08), (1.4423828125, 0.00031222839606925845))
LOG10_E = Pair((0.4342944771051407, 4.798111141615973e-09), (0.4342041015625, 9.038033749675378e-05))
LOG10_2 = Pair((0.30102999566361177, 3.694239077158931e-13), (0.301025390625, 4.605039066518657e-06))
FAR = Pair(2.0**28, 2.0**13)  # from here on, the root of x^2 +- 1 is x
LIFT = Pair(54.0, 25.0)  # 2^LIFT makes every subnormal number normal


def normal_parts(x: Value) -> tuple[Value, Value]:
    """k and m of any positive number."""
    small, lift = x < x.pick(TINY), x.pick(LIFT)
    k, m = split(select(small, x * 2.0**lift, x))
    return k - select(small, x.of(lift), 0.0), m


def log_parts(m: Value) -> tuple[Value, Value, Value]:
    """f, f^2 / 2 and s (f^2 / 2 + s^2 R), whose signed sum is log m."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half = f * (0.5 * f)
    return f, half, s * (half + z * polynomial(m.pick(c.LOG), z))


def special(x: Value, y: Value) -> Value:
    """y, or what logarithms of 0, infinity, NaN and negative numbers are."""
    y = select(x > 0.0, y, select(x.same(0.0), y.of(-INF), NAN))
    return select(x < INF, y, x)


def log(x: Value) -> Value:
    k, m = normal_parts(x)
    f, half, rest = log_parts(m)
    return special(x, k * x.pick(HIGH) - ((half - (rest + k * x.pick(LOW))) - f))


def log_of(u: Value, c: Value, doubled: Value | float = 0.0) -> Value:
    """log (u + c) + doubled log 2, for a positive normal u and a small c."""
    k, m = split(u)
    f, half, rest = log_parts(m)
    s = f / (f + 2.0)
    small = c * two_to(-select(k < 60.0, k, 60.0)) * (1.0 - 2.0 * s * (1.0 - s))  # 1 / m = (1 - s) / (1 + s)
    k = k + doubled
    return k * u.pick(HIGH) - ((half - (rest + (k * u.pick(LOW) + small))) - f)


def log1p(x: Value) -> Value:
    inside = (x > -1.0) & (x < INF)
    u, lost = two_sum(x.of(1.0), select(inside, x, 0.0))
    y = select(abs(x) < x.pick(SMALL), x, log_of(u, lost))
    y = select(x > -1.0, y, select(x.same(-1.0), y.of(-INF), NAN))
    return select(x < INF, y, x)


def log_in_parts(x: Value) -> tuple[Value, Value, Value]:
    """k, a number with half the digits, and a small one: log x = k log 2 + their sum."""
    k, m = normal_parts(x)
    f, half, rest = log_parts(m)
    high, _ = halves(f - half)
    return k, high, ((f - high) - half) + rest


def log2(x: Value) -> Value:
    k, high, low = log_in_parts(x)
    first, last = x.pick(LOG2_E)
    total, lost = sum_of(k, high * first)
    return special(x, total + (lost + (low * (first + last) + high * last)))


def log10(x: Value) -> Value:
    k, high, low = log_in_parts(x)
    first, last = x.pick(LOG10_E)
    two_first, two_last = x.pick(LOG10_2)
    total, lost = sum_of(k * two_first, high * first)
    return special(x, total + (lost + (k * two_last + (low * (first + last) + high * last))))


def xlogy(x: Value, y: Value) -> Value:
    return select(x.same(0.0), x.of(0.0), x * log(y))


def softplus(x: Value) -> Value:
    return select((x >= 0.0) | x.is_nan, x, 0.0) + log1p(exp(-abs(x)))


def logaddexp(a: Value, b: Value) -> Value:
    top = select((a >= b) | a.is_nan, a, b)
    return select(abs(top).same(INF), top, top + log1p(exp(-abs(a - b))))


def root_of(high: Value, low: Value) -> tuple[Value, Value]:
    """sqrt (high + low), and what its rounding loses."""
    root = sqrt(high)
    square, lost = two_product(root, root)
    rest = ((high - square) - lost + low) / select(root > 0.0, root + root, 1.0)
    return root, rest


def asinh(x: Value) -> Value:
    """log (|x| + sqrt (x^2 + 1))."""
    size = abs(x)
    far = size >= x.pick(FAR)
    near = select(size < x.pick(FAR), size, 1.0)
    square, low = two_product(near, near)
    square, lost = two_sum(x.of(1.0), square)
    root, rest = root_of(square, lost + low)
    u, c = sum_of(root, near)
    u, c = select(far & (size < INF), size, u), select(far, 0.0, c + rest)
    y = log_of(u, c, select(far, x.of(1.0), 0.0))
    y = select(size < x.pick(Pair(2.0**-28, 2.0**-13)), size, y)
    return select(size < INF, copysign(y, x), x)


def acosh(x: Value) -> Value:
    """log (x + sqrt (x^2 - 1))."""
    far = x >= x.pick(FAR)
    near = select((x >= 1.0) & (x < x.pick(FAR)), x, 1.0)
    up, lost = two_sum(near, x.of(1.0))
    square, low = two_product(near - 1.0, up)
    root, rest = root_of(square, low + (near - 1.0) * lost)
    u, c = sum_of(near, root)
    u, c = select(far & (x < INF), x, u), select(far, 0.0, c + rest)
    y = log_of(u, c, select(far, x.of(1.0), 0.0))
    return select(x < INF, select(x >= 1.0, y, NAN), x)


def atanh(x: Value) -> Value:
    """Half of log ((1 + x) / (1 - x)).  With 2^k near the quotient, s = (1 + x - 2^k (1 - x)) / (1 + x + 2^k (1 - x)),
    which is x itself near 0."""
    size = select(abs(x) < 1.0, abs(x), 0.0)
    up, up_low = sum_of(1.0, size)
    down, down_low = sum_of(1.0, -size)
    k, _ = split(up / down)
    power = two_to(k)
    n, n_low = two_sum(up - power * down, up_low - power * down_low)
    d, d_low = two_sum(up, power * down)
    s = n / d
    product, lost = two_product(s, d)
    s_low = (((n - product) - lost) + (n_low - s * d_low)) / d
    z = s * s
    half = 0.5 * k
    y = half * x.pick(HIGH) + (s + (s_low + 0.5 * s * z * polynomial(x.pick(c.LOG), z) + half * x.pick(LOW)))
    y = select(abs(x) < 1.0, y, select(abs(x).same(1.0), y.of(INF), NAN))
    return copysign(y, x)
