"""asin, acos, atan, atan2, after fdlibm (Ng 1993): an argument near 0, and a known angle in two parts."""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.steps import (
    Pair,
    Value,
    copysign,
    halves,
    polynomial,
    select,
    sqrt,
    sum_of,
    two_product,
    two_sum,
)

INF, NAN = float("inf"), float("nan")
HALF_PI = Pair((1.5707963267948966, 6.123233995736766e-17), (1.5707963705062866, -4.371138828673793e-08))
PI = Pair((3.141592653589793, 1.2246467991473532e-16), (3.1415927410125732, -8.742277657347586e-08))
LEAST = Pair(1e-300, 1e-37)  # far less than any divisor here that is not 0


def arc(x: Value) -> tuple[Value, Value, Value, Value]:
    """For |x| <= 1: |x| > 1/2, and if so, asin (sqrt ((1 - |x|) / 2)), else asin |x|, as the sum of s, which then has
    half the digits, and two small numbers."""
    size = select(abs(x) <= 1.0, abs(x), 0.0)
    big = size > 0.5
    z = select(big, 0.5 * (1.0 - size), size * size)
    root = sqrt(z)
    short, _ = halves(root)
    rest = (z - short * short) / (root + short + x.pick(LEAST))
    s = select(big, root, size)
    return big, select(big, short, size), select(big, rest, 0.0), s * z * polynomial(z.pick(c.ASIN), z)


def asin(x: Value) -> Value:
    big, s, rest, more = arc(x)
    high, low = x.pick(HALF_PI)
    start = select(big, x.of(high), 0.0)
    total, lost = sum_of(start, select(big, -2.0 * s, s))
    small = select(big, (low - 2.0 * (rest + more)), more)
    y = total + (lost + small)
    return select(abs(x) <= 1.0, copysign(y, x), NAN)


def acos(x: Value) -> Value:
    big, s, rest, more = arc(x)
    high, low = x.pick(HALF_PI)
    positive = x > 0.0
    all_, all_low = x.pick(PI)
    start = select(big, select(positive, x.of(0.0), all_), high)
    start_low = select(big, select(positive, x.of(0.0), all_low), low)
    sign = select(big, select(positive, x.of(2.0), -2.0), select(positive, x.of(-1.0), 1.0))
    total, lost = sum_of(start, sign * s)
    y = total + (lost + (start_low + sign * (rest + more)))
    return select(abs(x) <= 1.0, y, NAN)


def angle(a: Value, b: Value) -> tuple[Value, Value, Value]:
    """n, d and the number of a range: atan (a / b) for a, b >= 0 is atan (n / d) and the angle of the range."""
    first, second, third, last = (a < bound * b for bound in (0.4375, 0.6875, 1.1875, 2.4375))
    n = select(first, a, select(second, 2.0 * a - b, select(third, a - b, select(last, a - 1.5 * b, -b))))
    d = select(first, b, select(second, 2.0 * b + a, select(third, a + b, select(last, b + 1.5 * a, a))))
    number = select(first, a.of(0.0), select(second, a.of(1.0), select(third, a.of(2.0), select(last, a.of(3.0), 4.0))))
    return n, d, number


def known(number: Value) -> tuple[Value, Value]:
    """The angle of a range, in two parts: 0, atan (1/2), atan 1, atan (3/2), atan infinity."""
    parts = []
    for angles in number.pick(c.ANGLES):
        chosen = number.of(angles[4])
        for i in (3, 2, 1, 0):
            chosen = select(number < i + 0.5, number.of(angles[i]), chosen)
        parts.append(chosen)
    return parts[0], parts[1]


def atan_near(t: Value) -> Value:
    """atan t - t for |t| <= 7/16."""
    z = t * t
    return t * z * polynomial(z.pick(c.ATAN), z)


def atan(x: Value) -> Value:
    size = abs(x)
    size = select(size < x.pick(Pair(1e17, 1e8)), size, x.pick(Pair(1e17, 1e8)))
    n, d, number = angle(size, size.of(1.0))
    t = n / d
    high, low = known(number)
    total, lost = sum_of(high, t)
    y = total + (lost + (atan_near(t) + low))
    return select(x.is_nan, x, copysign(y, x))


def atan2(y: Value, x: Value) -> Value:
    a, b = abs(y), abs(x)
    a, b = select(a.is_nan, 1.0, a), select(b.is_nan, 1.0, b)
    endless = a.same(INF) | b.same(INF)
    a, b = (select(endless, select(v.same(INF), v.of(1.0), 0.0), v) for v in (a, b))
    b = select(a.same(0.0) & b.same(0.0), b.of(1.0), b)
    top = select(a > b, a, b)
    big, tiny, down, up = y.pick(Pair((1e150, 1e-150, 2.0**-600, 2.0**600), (1e18, 1e-18, 2.0**-64, 2.0**64)))
    scale = select(top > big, a.of(down), select(top < tiny, a.of(up), 1.0))
    n, d, number = angle(a * scale, b * scale)
    t = n / d
    product, lost = two_product(t, d)
    low = ((n - product) - lost) / d
    steep = a < b * y.pick(Pair(2.0**-60, 2.0**-30))  # so small that the quotient may be subnormal
    ratio = a / select(b > 0.0, b, 1.0)
    high, rest = known(number)
    total, more = sum_of(high, t)
    rest = more + (atan_near(t) + (rest + low))
    total, rest = select(steep, ratio, total), select(steep, 0.0, rest)
    back = copysign(1.0, x) < 0.0
    all_, all_low = y.pick(PI)
    away, lost = two_sum(x.of(all_), -total)
    angle_ = select(back, away + (lost + (all_low - rest)), total + rest)
    return select(x.is_nan | y.is_nan, x + y, copysign(angle_, y))


def hypot(x: Value, y: Value) -> Value:
    """Scaled by a power of two if squares would leave the range."""
    a, b = abs(x), abs(y)
    top = select(a >= b, a, b)
    big, tiny, down, up = x.pick(Pair((1e150, 1e-150, 2.0**-600, 2.0**600), (1e18, 1e-18, 2.0**-70, 2.0**70)))
    scale = select(top > big, x.of(down), select(top < tiny, x.of(up), 1.0))
    a, b = a * scale, b * scale
    length = sqrt(a * a + b * b) / scale
    return select(abs(x).same(INF) | abs(y).same(INF), length.of(INF), length)


def squares(x: Value, y: Value) -> Value:
    return (x - y) * (x + y)


def cosine(x: Value, y: Value) -> Value:
    at_zero = x.same(0.0)
    return select(at_zero, x.of(0.0), x / select(at_zero, x.of(1.0), hypot(x, y)))


def turn(x: Value, y: Value) -> Value:
    at_zero = x.same(0.0)
    length = select(at_zero, x.of(1.0), hypot(x, y))
    return select(at_zero, x.of(0.0), x / length / length)
