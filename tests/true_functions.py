"""What the elementary functions truly are, by mpmath, and points at which they are hard to compute."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from random import Random

from mpmath import mp, mpf

PRECISION = 300  # bits; more for huge arguments of sin
TYPES = ("f64", "f32")

TRUE: dict[str, Callable] = {
    "exp": mp.exp, "exp2": lambda x: mpf(2) ** x, "expm1": mp.expm1, "sinh": mp.sinh, "cosh": mp.cosh,
    "tanh": mp.tanh, "log": mp.log, "log1p": mp.log1p, "log2": lambda x: mp.log(x) / mp.ln2,
    "log10": lambda x: mp.log(x) / mp.ln10, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "sin": mp.sin,
    "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "erf": mp.erf, "pow": lambda x, y: mp.mpf(x) ** y,
    "atan2": mp.atan2, "hypot": mp.hypot, "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)), "logaddexp": lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))),
    "xlogy": lambda x, y: x * mp.log(y), "bell": lambda x: mp.exp(-x * x), "sech2": lambda x: mp.sech(x) ** 2,
}  # fmt: skip

# the greatest error that is allowed, in units of the last place
ALLOWED = dict.fromkeys(TRUE, 1.0) | {
    "tanh": 1.5, "sigmoid": 1.6, "softplus": 1.5, "logaddexp": 2.0, "xlogy": 1.5, "sech2": 3.5, "hypot": 1.3,
    "erf": 1.05,
}  # fmt: skip

Range = tuple[float, float]
# numbers spread evenly, by type
EVEN: dict[str, tuple[list[Range], list[Range]]] = {
    "exp": ([(-1, 1), (-745, 709)], [(-1, 1), (-103, 88)]), "exp2": ([(-1, 1), (-1074, 1023)], [(-1, 1), (-149, 127)]),
    "expm1": ([(-1, 1), (-40, 709)], [(-1, 1), (-20, 88)]), "sinh": ([(-2, 2), (-710, 710)], [(-2, 2), (-89, 89)]),
    "cosh": ([(-2, 2), (-710, 710)], [(-2, 2), (-89, 89)]), "tanh": ([(-1, 1), (-22, 22)], [(-1, 1), (-12, 12)]),
    "log": ([(0.5, 2)],) * 2, "log1p": ([(-1, 1)],) * 2, "log2": ([(0.5, 2)],) * 2, "log10": ([(0.5, 2)],) * 2,
    "asinh": ([(-3, 3)],) * 2, "acosh": ([(1, 1.1), (1, 4)],) * 2, "atanh": ([(-1, 1), (-0.4, 0.4)],) * 2,
    "sin": ([(-1, 1), (-10, 10), (-3e5, 3e5)], [(-1, 1), (-10, 10), (-600, 600)]), "asin": ([(-1, 1)],) * 2,
    "acos": ([(-1, 1)],) * 2, "atan": ([(-1, 1), (-5, 5)],) * 2, "cbrt": ([(0.5, 8)],) * 2,
    "erf": ([(-1, 1), (-6, 6)], [(-1, 1), (-4, 4)]), "sigmoid": ([(-4, 4), (-700, 40)], [(-4, 4), (-87, 20)]),
    "softplus": ([(-4, 4), (-700, 40)], [(-4, 4), (-87, 20)]), "bell": ([(-3, 3), (-26, 26)], [(-3, 3), (-9, 9)]),
    "sech2": ([(-3, 3), (-350, 350)], [(-3, 3), (-43, 43)]),
}  # fmt: skip
EVEN |= {"cos": EVEN["sin"], "tan": EVEN["sin"]}
# numbers of all sizes; the second says whether negative ones are taken
SIZES: dict[str, tuple[Range, bool]] = {
    name: ((5e-324, 1.0), True) for name in ("exp", "expm1", "sinh", "tanh", "asin", "acos", "atanh", "erf")
} | {
    name: ((5e-324, 1.7e308), True) for name in ("sin", "cos", "tan", "atan", "asinh", "cbrt")
} | {
    "log": ((5e-324, 1.7e308), False), "log2": ((5e-324, 1.7e308), False), "log10": ((5e-324, 1.7e308), False),
    "log1p": ((5e-324, 1.7e308), False), "acosh": ((1.0, 1.7e308), False),
}  # fmt: skip


def single(x: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def fitting(ty: str) -> Callable[[float], float]:
    return single if ty == "f32" else float


def unit(true: mpf, ty: str) -> mpf:
    """The unit of the last place of a number."""
    digits, least = (53, -1074) if ty == "f64" else (24, -149)
    return mpf(2) ** max(int(mp.floor(mp.log(abs(true), 2))) - digits + 1, least)


def greatest(ty: str) -> mpf:
    return mpf(2) ** 1024 - mpf(2) ** 970 if ty == "f64" else mpf(2) ** 128 - mpf(2) ** 103


def error(name: str, got: float, args: tuple[float, ...], ty: str) -> float:
    """In units of the last place."""
    with mp.workprec(PRECISION if abs(args[0]) < 1e30 else 2 * PRECISION + 1000):
        true = TRUE[name](*map(mpf, args))
    if true == 0:
        return 0.0 if got == 0 else math.inf
    if abs(true) > greatest(ty) or math.isinf(got):
        return 0.0 if math.isinf(got) and abs(true) > greatest(ty) - unit(greatest(ty), ty) else math.inf
    larger = max(abs(true), *map(abs, args)) if name == "logaddexp" else true  # a sum, which may be near 0
    return float(abs(mpf(got) - true) / unit(larger, ty))


def of_all_sizes(draw: Random, low: float, high: float, signs: bool) -> float:
    size = 2.0 ** draw.uniform(math.log2(low), min(math.log2(high), 1023.9))
    return -size if signs and draw.random() < 0.5 else size


def random_points(name: str, ty: str, count: int, seed: int = 1) -> Iterator[tuple[float, ...]]:
    """So many points by chance."""
    draw, fit = Random(f"{seed} {name} {ty}"), fitting(ty)
    ranges = EVEN.get(name, ([], []))[ty == "f32"]
    for i in range(count):
        if name in PAIRS:
            point = PAIRS[name](draw, ty)
        elif name in SIZES and i % (len(ranges) + 1) == 0:
            (low, high), signs = SIZES[name]
            if ty == "f32":
                low, high = max(low, 1.5e-45), min(high, 3.4e38)
            point = (of_all_sizes(draw, low, high, signs),)
        else:
            point = (draw.uniform(*ranges[i % len(ranges)]),)
        fitted = tuple(map(fit, point))
        if all(map(math.isfinite, fitted)):
            yield fitted


def power_point(draw: Random, ty: str) -> tuple[float, float]:
    """A power that is neither too small nor too large."""
    low = draw.choice((0.5, 0.99, 1e-300 if ty == "f64" else 1e-37))
    x = of_all_sizes(draw, low, 1.0 / low, False)
    most = (1020.0 if ty == "f64" else 124.0) / max(abs(math.log2(x)), 1e-9)
    return x, draw.uniform(-most, most)


def two_sizes(draw: Random, ty: str) -> tuple[float, float]:
    most = draw.choice([1.0, 4.0, 300.0 if ty == "f64" else 37.0])
    return tuple(draw.choice((1.0, -1.0)) * 10.0 ** draw.uniform(-most, most) for _ in range(2))  # type: ignore


PAIRS: dict[str, Callable[[Random, str], tuple[float, float]]] = {
    "pow": power_point, "atan2": two_sizes, "hypot": two_sizes,
    "logaddexp": lambda draw, ty: (draw.uniform(-30, 30), draw.uniform(-30, 30)),
    "xlogy": lambda draw, ty: (draw.uniform(-9, 9), 10.0 ** draw.uniform(-30, 30)),
}  # fmt: skip


def hard_points(name: str, ty: str) -> list[tuple[float, ...]]:
    """Near multiples of pi / 2, where sin or cos is almost 0, and near the joints of ranges."""
    fit, found = fitting(ty), []
    if name in ("sin", "cos", "tan"):
        with mp.workprec(PRECISION):
            turns = [k * mp.pi / 2 for k in (*range(1, 60), *range(61, 160_000 if ty == "f64" else 325, 977))]
            found += [float(t) for t in sorted(turns, key=lambda t: abs(fit(float(t)) - t))[:80]]
        kahan = 6381956970095103.0 * 2.0**797  # of all f64 the nearest to a multiple of pi / 2
        found += [kahan, 1e22, 2.0**18, 2.0**9, 5e5, 1.7e308, 3.4e38]
    for joint in JOINTS.get(name, ()):
        found += neighbours(fit(joint), ty, 3)
    fitted = [(fit(x),) for x in found if math.isfinite(fit(x))]
    return [point for point in fitted if name != "acosh" or point[0] >= 1.0]


JOINTS: dict[str, tuple[float, ...]] = {
    "exp": (0.0, 0.34657359, 1.03972077, -0.34657359, 40.0, -103.9721, -745.1332),
    "expm1": (0.0, 0.34657359, -0.34657359, 1.03972077),
    "exp2": (0.0, 0.5, -0.5, 1.5, -150.0, -1075.0), "bell": (10.19667, 27.29713),
    "tanh": (0.0, 0.17328680, 0.51986039, 9.0, 19.0), "erf": (0.0, 0.1, 0.3065, 3.9),
    "sinh": (0.0, 1.0), "cosh": (0.34657359, 1.03972077), "log": (1.0, 0.70710678, 1.41421356), "atanh": (0.17157288,),
    "log1p": (0.41421356, -0.29289322, 1.82842712), "log2": (1.0, 1.41421356), "log10": (1.0, 1.41421356, 10.0),
    "asinh": (2.0**-28, 0.41421356), "acosh": (1.0, 2.0**13), "asin": (0.5, 0.99999), "acos": (0.5, -0.5),
    "atan": (0.4375, 0.6875, 1.1875, 2.4375), "sin": (0.0, 0.78539816, 2.35619449, 3.92699081),
    "cos": (0.78539816, 2.35619449), "tan": (0.0, 0.78539816), "cbrt": (1.0, 1.41421356, 0.70710678),
}  # fmt: skip


def neighbours(x: float, ty: str, count: int) -> list[float]:
    """x and the numbers beside it."""
    digits, least = (53, -1074) if ty == "f64" else (24, -149)
    step = math.ldexp(1.0, max(math.frexp(x)[1] - digits, least)) if x else math.ldexp(1.0, least)
    return [x + i * step for i in range(-count, count + 1)]
