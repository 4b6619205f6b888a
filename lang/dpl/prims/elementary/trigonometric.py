"""sin, cos, tan.

x = k pi / 2 + r + low with |r| <= pi / 4.  pi / 2 is a sum of four parts; the products of the first three with k are
exact (Cody and Waite 1980).  Far from 0 a function of its own takes only those digits of 2 / pi that matter (Payne and
Hanek 1983).
"""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.steps import (
    Pair,
    Value,
    entry,
    halves,
    narrow,
    nearest,
    odd,
    polynomial,
    rarely,
    second_bit,
    select,
    split,
    sum_of,
    two_product,
    two_sum,
    two_to,
    widen,
)

NAN = float("nan")
TWO_OVER_PI = 0.6366197723675814
HALF_PI = Pair(
    (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32),
    (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12),
)
FAR = Pair(2.0**18, 2.0**9)  # up to here the parts of pi / 2 suffice

CHUNK = 24  # bits of 2 / pi in an entry of the table
BEFORE = 3  # entries that are 0, before the point
CHUNKS = tuple(
    float(c.TWO_OVER_PI >> (c.TWO_OVER_PI_BITS - CHUNK * (i + 1)) & (2**CHUNK - 1)) if i >= 0 else 0.0
    for i in range(-BEFORE, c.TWO_OVER_PI_BITS // CHUNK)
)
USED = 9  # entries that give r with all its digits, whatever cancels


def reduced(x: Value) -> tuple[Value, Value, Value]:
    """k, r and low, for |x| up to FAR."""
    one, two, three, four = x.pick(HALF_PI)
    k = nearest(x * TWO_OVER_PI)
    first = x - k * one
    more = k * two
    second = first - more
    lost = (first - second) - more
    more = k * three
    third = second - more
    low = lost + ((second - third) - more) - k * four
    r = third + low
    return k, r, low - (r - third)


def sin_near(r: Value, low: Value) -> tuple[Value, Value]:
    """A large and a small part of sin (r + low), for |r| <= pi / 4."""
    z = r * r
    first, *rest = r.pick(c.SIN)
    cube = z * r
    return r, cube * first - (z * (0.5 * low - cube * polynomial(rest, z)) - low)


def cos_near(r: Value, low: Value) -> tuple[Value, Value]:
    z = r * r
    half = 0.5 * z
    w = 1.0 - half
    return w, ((1.0 - w) - half) + (z * z * polynomial(r.pick(c.COS), z) - r * low)


def turned(k: Value, r: Value, low: Value) -> Value:
    """sin (k pi / 2 + r + low)."""
    (sin_large, sin_small), (cos_large, cos_small) = sin_near(r, low), cos_near(r, low)
    y = select(odd(k), cos_large + cos_small, sin_large + sin_small)
    return select(second_bit(k), -y, y)


def usual(x: Value) -> Value:
    """x, or 0 where x is far away, infinite or NaN."""
    return select(abs(x) < x.pick(FAR), x, 0.0)


def sin(x: Value) -> Value:
    near = usual(x)
    y = select(near.same(0.0), near, turned(*reduced(near)))  # -0 stays
    return rarely(near.differs(x), "sin_far", [x], y)


def cos(x: Value) -> Value:
    near = usual(x)
    k, r, low = reduced(near)
    return rarely(near.differs(x), "cos_far", [x], turned(k + 1.0, r, low))


def sin_far(x: Value) -> Value:
    if x.type == "f32":
        return narrow(sin(widen(x)))
    finite = abs(x) < float("inf")
    k, r, low = reduced_far(select(finite, abs(x), 1e6))
    y = turned(k, r, low)
    return select(finite, select(x < 0.0, -y, y), NAN)


def cos_far(x: Value) -> Value:
    if x.type == "f32":
        return narrow(cos(widen(x)))
    finite = abs(x) < float("inf")
    k, r, low = reduced_far(select(finite, abs(x), 1e6))
    return select(finite, turned(k + 1.0, r, low), NAN)


def tan_turned(k: Value, r: Value, low: Value) -> Value:
    """tan (k pi / 2 + r + low): a quotient, and its remainder over the divisor."""
    sin_high, sin_low = sum_of(*sin_near(r, low))
    cos_high, cos_low = sum_of(*cos_near(r, low))
    turn = odd(k)
    n, n_low = select(turn, cos_high, sin_high), select(turn, cos_low, sin_low)
    d, d_low = select(turn, -sin_high, cos_high), select(turn, -sin_low, cos_low)
    quotient = n / d
    product, lost = two_product(quotient, d)
    return quotient + (((n - product) - lost) + (n_low - quotient * d_low)) / d


def tan(x: Value) -> Value:
    near = usual(x)
    y = tan_turned(*reduced(near))
    return rarely(near.differs(x), "tan_far", [x], select(near.same(0.0), near, y))


def tan_far(x: Value) -> Value:
    if x.type == "f32":
        return narrow(tan(widen(x)))
    finite = abs(x) < float("inf")
    y = tan_turned(*reduced_far(select(finite, abs(x), 1e6)))
    return select(finite, select(x < 0.0, -y, y), NAN)


def reduced_far(x: Value) -> tuple[Value, Value, Value]:
    """k modulo 4, r and low, for any finite x from 2^9 on (f64).

    x * 2 / pi is the sum of the products of x with 24 bits of 2 / pi each.  The first ones are multiples of 4.  Nine of
    the others are added exactly in three numbers, modulo 4."""
    exponent, m = split(x)
    start = nearest((exponent - 55.0) * (1.0 / CHUNK) - 0.5)  # so many entries give multiples of 4
    unit = two_to(exponent - start * float(CHUNK) - float(CHUNK))
    parts = [part * unit for part in halves(m)]
    total, low, lowest = x.of(0.0), x.of(0.0), x.of(0.0)
    for i in range(USED):
        chunk = entry(CHUNKS, start + float(BEFORE + i))
        for part in parts:
            term = part * (chunk * 2.0 ** (-CHUNK * i))
            term = select(abs(term) < 2.0**52, term - 4.0 * nearest(term * 0.25), 0.0)
            total, lost = two_sum(total, term)
            low, lost = two_sum(low, lost)
            lowest = lowest + lost
    k = nearest(total)
    high, lost = two_sum(total - k, low)
    high, low = two_sum(high, lost + lowest)
    r, lost = two_product(high, x.of(HALF))
    return k, r, lost + (high * HALF_REST + low * HALF)


HALF, HALF_REST = 1.5707963267948966, 6.123233995736766e-17  # pi / 2
