"""log and what is made of it.

x = 2^k m with m from sqrt(1/2) to sqrt 2, f = m - 1, s = f / (2 + f); then log m = log ((1 + s) / (1 - s)) =
2 s + s^3 R(s^2), written as f - (f^2 / 2 - s (f^2 / 2 + s^2 R)), because f is exact (Ng 1993, in fdlibm).
"""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.steps import Pair, Value, polynomial, select, split

INF, NAN = float("inf"), float("nan")
# log 2 in two parts; a product of the first with an exponent is exact
HIGH, LOW = Pair(0.6931471803691238, 0.693145751953125), Pair(1.9082149292705877e-10, 1.428606765330187e-06)
TINY = Pair(2.0**-1022, 2.0**-126)  # the least normal number
LIFT = Pair(54.0, 25.0)  # 2^LIFT makes every subnormal number normal


def normal_parts(x: Value) -> tuple[Value, Value]:
    """k and m of any positive number; what is not positive or not finite gives some numbers."""
    tiny, lift = x.pick(TINY), x.pick(LIFT)
    x = select(x < INF, x, 1.0)
    small = x < tiny
    k, m = split(select(small, select(x > 0.0, x, 1.0) * 2.0**lift, x))
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
