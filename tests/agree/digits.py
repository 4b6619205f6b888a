"""What the derivatives of the table's rows truly are, and points at which they are hard to compute.

`SLOPES` has a closed form for each argument of a row, in numbers of 60 digits.  `points` are arguments of a type: near
the edges of domains, near zeros of derivatives, where branches of formulas meet, from the smallest to the largest
numbers, and some by chance.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from random import Random

from mpmath import mp, mpf

mp.dps = 60

Numbers = tuple[float, ...]
LEAST = {"f64": mpf(2) ** -1022, "f32": mpf(2) ** -126}  # with all digits


def floor_of_quotient(a: mpf, b: mpf) -> mpf:
    """However large the quotient is."""
    return mpf(Fraction(float(a)) // Fraction(float(b)))


def overlap(d: mpf) -> mpf:
    """The slope of the sigmoid."""
    return 1 / (2 + mp.exp(d) + mp.exp(-d))


def share(a: mpf, b: mpf) -> mpf:
    return 1 / (1 + mp.exp(b - a))


def only(f: Callable) -> tuple[Callable]:
    return (f,)


# Outside of a domain these are complex, or raise an error.
SLOPES: dict[str, tuple[Callable, ...]] = {
    "add": (lambda a, b: mpf(1), lambda a, b: mpf(1)),
    "sub": (lambda a, b: mpf(1), lambda a, b: mpf(-1)),
    "mul": (lambda a, b: b, lambda a, b: a),
    "div": (lambda a, b: 1 / b, lambda a, b: -a / b / b),
    "mod": (lambda a, b: mpf(1), lambda a, b: -floor_of_quotient(a, b)),
    "neg": only(lambda x: mpf(-1)),
    "pow": (lambda x, n: n * x ** (n - 1), lambda x, n: x**n * mp.log(x)),
    "abs": only(mp.sign),
    "max": (lambda a, b: mpf(a >= b), lambda a, b: mpf(a < b)),
    "min": (lambda a, b: mpf(a <= b), lambda a, b: mpf(a > b)),
    "exp": only(mp.exp),
    "exp2": only(lambda x: mpf(2) ** x * mp.log(2)),
    "expm1": only(mp.exp),
    "log": only(lambda x: 1 / x),
    "log1p": only(lambda x: 1 / (1 + x)),
    "log2": only(lambda x: 1 / (x * mp.log(2))),
    "log10": only(lambda x: 1 / (x * mp.log(10))),
    "sqrt": only(lambda x: 1 / (2 * mp.sqrt(x))),
    "cbrt": only(lambda x: 1 / (3 * mp.cbrt(abs(x)) ** 2)),
    "cos": only(lambda x: -mp.sin(x)),
    "sin": only(mp.cos),
    "tan": only(lambda x: 1 / mp.cos(x) ** 2),
    "asin": only(lambda x: 1 / mp.sqrt((1 - x) * (1 + x))),
    "acos": only(lambda x: -1 / mp.sqrt((1 - x) * (1 + x))),
    "atan": only(lambda x: 1 / (1 + x * x)),
    "sinh": only(mp.cosh),
    "cosh": only(mp.sinh),
    "tanh": only(lambda x: 4 * overlap(2 * x)),
    "asinh": only(lambda x: 1 / mp.sqrt(x * x + 1)),
    "acosh": only(lambda x: 1 / (mp.sqrt(x - 1) * mp.sqrt(x + 1))),
    "atanh": only(lambda x: 1 / (mp.sqrt(1 - x) * mp.sqrt(1 + x)) ** 2),
    "erf": only(lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    "lgamma": only(lambda x: mp.psi(0, x)),
    "sigmoid": only(overlap),
    "softplus": only(lambda x: share(x, mpf(0))),
    "relu": only(lambda x: mpf(x > 0)),
    "atan2": (lambda y, x: x / (x * x + y * y), lambda y, x: -y / (x * x + y * y)),
    "hypot": (lambda x, y: x / mp.hypot(x, y), lambda x, y: y / mp.hypot(x, y)),
    "xlogy": (lambda x, y: mp.log(y), lambda x, y: x / y),
    "logaddexp": (share, lambda a, b: share(b, a)),
}

# Where a slope is a difference of large numbers, its digits are those of the larger one.
LARGER: dict[str, Callable] = {"lgamma": lambda x: mp.psi(0, 1 - x) if x < 0 else mpf(0)}

# ---- points ---------------------------------------------------------------------------------------------------------

SIZES = (
    0.0, 1e-300, 1e-160, 1e-40, 1e-30, 1e-20, 1e-10, 1e-8, 1e-5, 1e-3, 0.1, 0.25, 0.3, 0.5, 0.6, 0.7, 1.0, 1.3,
    1.4616321, 1.461632144968362, 1.5, 2.0, 2.5, 3.0, 5.0, 8.0, 10.0, 14.3, 17.0, 19.0, 20.3, 25.9, 26.7, 37.1, 43.7,
    66.6, 87.5, 99.9, 300.5, 354.7, 371.3, 500.1, 700.9, 709.7, 720.5, 1e3, 1e8, 1e16, 1e19, 1e30, 1e38, 1e100,
    1e155, 1e160, 1e200, 1e300,
)  # fmt: skip
EDGES = tuple(1.0 - s * 10.0**-k for k in (1, 2, 4, 7, 8, 12, 13, 16) for s in (1, -1, 3))
TURNS = (1.5707963267948966, 3.141592653589793, 22.0, 355.0)
PAIRS = (0.0, 1e-300, 1e-160, 1e-20, 0.1, 1.5, 7.3, 36.9, 350.3, 1e160, 1e200)
EXPONENTS = (1e-20, 0.1, 1 / 3, 0.9, 1.5, 2.0, 17.3, 300.2)
BASES = (1e-300, 1e-30, 1e-5, 0.7, 1.0 - 1e-10, 1.0, 2.0, 37.7, 1e30, 1e300)


def dice(count: int, arity: int) -> Iterator[Numbers]:
    """Points by chance, the same each time."""
    draw = Random(12)
    for _ in range(count):
        spread = draw.choice((1.0, 3.0, 30.0))
        yield tuple(draw.uniform(-spread, spread) for _ in range(arity))
        yield tuple(draw.choice((1, -1)) * 10.0 ** draw.uniform(-20, 20) for _ in range(arity))


def sort_of(row: str) -> str:
    """Which points a row has: rows of one sort share theirs."""
    return row if row == "pow" else ("one", "two")[len(SLOPES[row]) - 1]


def candidates(sort: str) -> Iterator[Numbers]:
    match sort:
        case "one":
            for x in (*SIZES, *EDGES, *TURNS):
                yield from ((x,), (-x,))
            yield from dice(25, 1)
        case "two":
            for x, y in product(PAIRS, PAIRS):
                yield from ((x, y), (-x, y))
            yield from dice(30, 2)
        case _:
            for x, n in product(BASES, EXPONENTS):
                yield from ((x, n), (x, -n))
            yield from (tuple(map(abs, point)) for point in dice(30, 2))


def points(sort: str, kind: str) -> list[Numbers]:
    """The candidates, as numbers of a type: no infinities, and zero only for zero.  A power that is too small or too
    large for the type has lost its digits itself."""
    fit = single if kind == "f32" else float
    found = {}
    for point in candidates(sort):
        rounded = tuple(map(fit, point))
        if not all(abs(r) < mp.inf and (r != 0.0 or p == 0.0) for p, r in zip(point, rounded)):
            continue
        if sort != "pow" or LEAST[kind] < mpf(rounded[0]) ** mpf(rounded[1]) < 1 / LEAST[kind]:
            found[rounded] = None
    return list(found)


# ---- distances ------------------------------------------------------------------------------------------------------

FORMATS = {"f64": (53, -1074, 1024), "f32": (24, -149, 128)}  # digits, least and greatest exponent


def truth(row: str, i: int, point: Numbers) -> mpf | None:
    """The slope in argument `i`; None where there is none, or it is infinite."""
    try:
        slope = SLOPES[row][i](*map(mpf, point))
    except (ZeroDivisionError, ValueError):
        return None
    return slope if isinstance(slope, mpf) and mp.isfinite(slope) else None


def curvature(row: str, i: int, j: int, point: Numbers) -> mpf | None:
    """The derivative in argument `j` of the slope in argument `i`, from differences, with 70 digits."""
    with mp.workdps(140):
        x = list(map(mpf, point))
        h = abs(x[j]) * mpf(10) ** -35
        try:
            low, high = (SLOPES[row][i](*x[:j], x[j] + s * h, *x[j + 1 :]) for s in (-1, 1))
        except (ZeroDivisionError, ValueError):
            return None
        change = (high - low) / (2 * h)
        return change if isinstance(change, mpf) and 1e-40 < abs(change) < 1e40 else None


def distance(row: str, got: float, true: mpf, point: Numbers, kind: str) -> float:
    """In units in the last place of the type; 0 where the true one is too large for it."""
    digits, least, most = FORMATS[kind]
    size = max(abs(true), abs(LARGER[row](*map(mpf, point))) if row in LARGER else 0)
    exponent = mp.frexp(size)[1] if size else least
    if exponent > most or (exponent == most and abs(got) == mp.inf):
        return 0.0
    if not abs(got) < mp.inf:
        return float("inf")
    return float(abs(mpf(got) - true) / mpf(2) ** max(exponent - digits, least))


def single(x: float) -> float:
    """The nearest number of 32 bits."""
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return float("inf")
