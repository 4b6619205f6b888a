"""The rows for numbers, on Python's numbers: the same steps as in native code (`machine/rt/maths.rt`), and the results
of IEEE 754 where Python raises an error."""

from __future__ import annotations

import math

from dpl.prims.elementary import late

INF, NAN = math.inf, math.nan
power, log, sin, cos, tan = late("pow"), late("log"), late("sin"), late("cos"), late("tan")


def fdiv(a: float, b: float) -> float:
    if b == 0.0:
        return NAN if a == 0.0 or a != a else math.copysign(INF, a) * math.copysign(1.0, b)
    return a / b


def div(a, b):
    return a // b if isinstance(a, int) else fdiv(a, b)  # integers: the engine reports division by zero


def mod(a, b):
    """The remainder with the divisor's sign, for integers and floats.  NaN where IEEE 754 has no remainder."""
    if isinstance(a, int):
        return a % b
    if b == 0.0 or math.isinf(a) or a != a or b != b:
        return NAN
    r = math.fmod(a, b)
    return r + b if r != 0.0 and (r < 0.0) != (b < 0.0) else r


def quot(a: int, b: int) -> int:
    """The quotient of integers, truncated towards zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def powi(x, n: int):
    """A power with a whole exponent.  Integers are exact or, for large exponents, modulo 2^64: the row wraps them."""
    if isinstance(x, int):
        if n >= 0:
            return pow(x, n) if n < 64 or x in (-1, 0, 1) else pow(x, n, 1 << 64)
        return {1: 1, -1: 1 if n % 2 == 0 else -1}.get(x, 0)  # the quotient 1 / x ** -n, truncated
    match n:  # multiplied out, as native code does
        case -1:
            return fdiv(1.0, x)
        case 0:
            return 1.0
        case 1:
            return x
        case 2:
            return x * x
        case 3:
            return (x * x) * x
        case 4:
            return (x * x) * (x * x)
        case _:
            return power(x, float(n))


def total(f):
    """A function of `math` that returns the results of IEEE 754 instead of raising exceptions."""

    def g(x: float) -> float:
        try:
            return f(x)
        except OverflowError:
            return INF
        except ValueError:
            return NAN

    return g


def whole(f):
    """The function for floats: a zero has the sign of the argument; infinities, NaN and integers are left."""
    return lambda x: x if isinstance(x, int) or math.isinf(x) or x != x else math.copysign(float(f(x)), x)


def sign(x):
    """-1, 0 or 1, of the argument's type; NaN for NaN."""
    return x if x != x else type(x)((x > 0) - (x < 0))


def greater(a, b):
    """The greater one; NaN if one of them is NaN."""
    return a if a >= b or a != a else b


def lesser(a, b):
    """The lesser one; NaN if one of them is NaN."""
    return a if a <= b or a != a else b


def clip(x, lo, hi):
    """`x` between the bounds; NaN stays NaN."""
    return lo if x < lo else hi if x > hi else x


# Lanczos' approximation of the gamma function with g = 6.0247 (Pugh 2004), as a quotient of polynomials
LANCZOS_G = 6.024680040776729583740234375
LANCZOS_UP = (
    23531376880.410759688572007674451636754734846804940, 42919803642.649098768957899047001988850926355848959,
    35711959237.355668049440185451547166705960488635843, 17921034426.037209699919755754458931112671403265390,
    6039542586.3520280050642916443072979210699388420708, 1439720407.3117216736632230727949123939715485786372,
    248874557.86205415651146038641322942321632125127801, 31426415.585400194380614231628318205362874684987640,
    2876370.6289353724412254090516208496135991145378768, 186056.26539522349504029498971604569928220784236328,
    8071.6720023658162106380029022722506138218516325024, 210.82427775157934587250973392071336271166969580291,
    2.5066282746310002701649081771338373386264310793408,
)  # fmt: skip
LANCZOS_DOWN = (0.0, 39916800.0, 120543840.0, 150917976.0, 105258076.0, 45995730.0, 13339535.0, 2637558.0, 357423.0,
                32670.0, 1925.0, 66.0, 1.0)  # fmt: skip
LOG_PI = 1.144729885849400174143427351353058711647


def lanczos(x: float) -> float:
    up = down = 0.0
    if x < 5.0:
        for a, b in zip(reversed(LANCZOS_UP), reversed(LANCZOS_DOWN), strict=True):
            up, down = up * x + a, down * x + b
    else:
        for a, b in zip(LANCZOS_UP, LANCZOS_DOWN, strict=True):
            up, down = up / x + a, down / x + b
    return up / down


def sin_pi(x: float) -> float:
    """sin (pi x) for x >= 0."""
    y = math.fmod(x, 2.0)
    match math.floor(2.0 * y + 0.5):
        case 0:
            return sin(math.pi * y)
        case 1:
            return cos(math.pi * (y - 0.5))
        case 2:
            return sin(math.pi * (1.0 - y))
        case 3:
            return -cos(math.pi * (y - 1.5))
        case _:
            return sin(math.pi * (y - 2.0))


def lgamma(x: float) -> float:
    """The logarithm of the absolute value of Gamma: Lanczos' sum, and the reflection formula below zero."""
    if x != x:
        return x
    if math.isinf(x):
        return INF
    if x == math.floor(x) and x <= 2.0:
        return INF if x <= 0.0 else 0.0
    size = abs(x)
    if size < 1e-20:
        return -log(size)
    r = log(lanczos(size)) - LANCZOS_G
    r = r + (size - 0.5) * (log(size + LANCZOS_G - 0.5) - 1.0)
    if x < 0.0:
        r = LOG_PI - log(abs(sin_pi(size))) - log(size) - r
    return r


BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


# psi x = (x - root) * (NEAR + P (x - 1) / Q (x - 1)) for x from 1 to 2; the root in three parts, each exact.
ROOT = (1569415565 / 2**30, 381566830 / 2**60, 9.016312093258695918615325266959189453125e-20)
NEAR = 0.99558162689208984
PSI_UP = (0.25479851061131551, -0.32555031186804491, -0.65031853770896507, -0.28919126444774784,
          -0.045251321448739056, -0.0020713321167745952)  # fmt: skip
PSI_DOWN = (1.0, 2.0767117023730469, 1.4606242909763515, 0.43593529692665969, 0.054151797245674225,
            0.0021284987017821144, -5.5789841321675513e-07)  # fmt: skip


def polynomial(coefficients: tuple[float, ...], x: float) -> float:
    total = 0.0
    for c in reversed(coefficients):
        total = total * x + c
    return total


def cot_pi(x: float) -> float:
    """cot (pi x) for x from -1/2 to 1/2."""
    size = abs(x)
    cot = 1.0 / tan(math.pi * size) if size < 0.25 else tan(math.pi * (0.5 - size))
    return cot if x > 0.0 else -cot


def digamma(x: float) -> float:
    """psi x.  Reflection leads to x > 0, the recurrence to 1 <= x <= 2 or x >= 10; there a quotient of polynomials or
    the asymptotic series (Abramowitz & Stegun 6.3.18) applies."""
    if x != x or x == -INF:
        return NAN
    reflected = rest = 0.0
    if x < 0.0:
        part = x - math.floor(x + 0.5)
        if part == 0.0:
            return NAN
        reflected = -math.pi * cot_pi(part)
        x = 1.0 - x
    elif x == 0.0:
        return NAN
    elif x < 1.0:
        rest = -1.0 / x
        x += 1.0
    while 2.0 < x < 10.0:
        x -= 1.0
        rest += 1.0 / x
    if x <= 2.0:
        away = x - ROOT[0] - ROOT[1] - ROOT[2]
        ratio = polynomial(PSI_UP, x - 1.0) / polynomial(PSI_DOWN, x - 1.0)
        return (away * NEAR + away * ratio) + rest + reflected
    square = 1.0 / (x * x)
    series = 0.0
    for k in range(10, 0, -1):
        series = (series + BERNOULLI[k - 1] / (2.0 * k)) * square
    return log(x) - 0.5 / x - series + reflected


def trigamma(x: float) -> float:
    """psi' x.  Reflection leads to x > 0, the recurrence to x >= 8, where the asymptotic series applies (Abramowitz &
    Stegun 6.4.7, 6.4.6, 6.4.12); the smallest terms are added first."""
    if x != x or x == -INF or (x <= 0.0 and x == math.floor(x)):
        return NAN
    sign, reflected = 1.0, 0.0
    if x < 0.0:
        sine = sin(math.pi * (x - math.floor(x + 0.5))) / math.pi
        sign, reflected = -1.0, fdiv(1.0, sine * sine)
        x = 1.0 - x
    steps = -math.floor(x - 8.0) if x < 8.0 else 0
    inverse = 1.0 / (x + steps)
    square = inverse * inverse
    series = 0.0
    for k in range(9, -1, -1):
        series = series * square + BERNOULLI[k]
    total = inverse + (0.5 * square + inverse * (square * series))
    while steps > 0:
        steps -= 1
        total += fdiv(1.0, (x + steps) * (x + steps))
    return reflected + sign * total


def reciprocal_power(n: int, x: float) -> float:
    """n! / x ** (n + 1), as a product of quotients, which overflows no sooner than the result."""
    inverse = fdiv(1.0, x)
    product = inverse
    for i in range(1, n + 1):
        product *= i * inverse
    return product


def polygamma(n: int, x: float) -> float:
    """psi^(n)(x), by the recurrence to x >= 10 + n and the asymptotic series (Abramowitz & Stegun 6.4.11).  For n > 1
    the recurrence replaces reflection, so negative x far from 0 is slow; below -1e6 the result is NaN.  Poles give
    NaN."""
    if n == 0:
        return digamma(x)
    if n == 1:
        return trigamma(x)
    if x != x or n < 0 or x < -1e6 or (x <= 0.0 and x == math.floor(x)):
        return NAN
    shift = 0.0
    while x < 10.0 + n:
        shift += reciprocal_power(n, x)
        x += 1.0
    square = 1.0 / (x * x)
    rising, series = 1.0, 0.5 * (n / x)
    for k, b in enumerate(BERNOULLI):
        rising *= (n + 2 * k) * square * (n + 2 * k + 1) / ((2 * k + 1) * (2 * k + 2))
        series += b * rising
    total = shift + reciprocal_power(n - 1, x) * (1.0 + series)
    return total if n % 2 == 1 else -total


def saturate(bits: int, signed: bool):
    """Conversions to integers of this many bits."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def convert(x):
        """Integers wrap; floats truncate and saturate, NaN gives 0; booleans give 0 and 1."""
        if isinstance(x, float):
            return 0 if x != x else int(min(max(x, low), high)) if not math.isinf(x) else (high if x > 0 else low)
        x = int(x) & ((1 << bits) - 1)
        return x - (1 << bits) if signed and x > high else x

    return convert
