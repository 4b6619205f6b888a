"""erf."""

from __future__ import annotations

from dpl.prims.elementary import coefficients as c
from dpl.prims.elementary.exponential import expm1_parts
from dpl.prims.elementary.steps import Pair, Value, copysign, polynomial, select, sum_of

END = Pair(6.0, 4.0)  # from here on, erf is 1


def erf(x: Value) -> Value:
    """1 - e^-h with h = 9/8 x + x P(x), so one polynomial serves near 0 and far away."""
    size = abs(x)
    size = select(size < x.pick(END), size, x.pick(END))
    h = -size
    start, lost = sum_of(h, 0.125 * h)
    total, more = sum_of(start, h * polynomial(x.pick(c.ERF), size))
    high, low = expm1_parts(total, lost + more)
    return select(x.is_nan, x, copysign(high + low, x))
