"""Makes `densities.json`: distributions at hard points by mpmath:  pip install mpmath scipy; python densities.py

At the ends of their support, far out, with parameters at their limits, and with large ones, where formulas subtract
large numbers.  All numbers are of f32, so that they are exact in both types."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np
from scipy import stats

mp.mp.dps = 50
INF, NAN = float("inf"), float("nan")


def part(x: mp.mpf, y: mp.mpf) -> mp.mpf:
    """x log y, where nothing times infinity is nothing."""
    return mp.mpf(0) if x == 0 else x * mp.log(y)


def log_beta(a: mp.mpf, b: mp.mpf) -> mp.mpf:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def share(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.betainc(a, b, 0, x, regularized=True)


def gamma(a: mp.mpf, rate: mp.mpf, x: mp.mpf) -> mp.mpf:
    return part(a - 1, x) + a * mp.log(rate) - rate * x - mp.loggamma(a)


def inverse_gamma(a: mp.mpf, scale: mp.mpf, x: mp.mpf) -> mp.mpf:
    return a * mp.log(scale) - (a + 1) * mp.log(x) - scale / x - mp.loggamma(a)


def beta(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    return part(a - 1, x) + part(b - 1, 1 - x) - log_beta(a, b)


def student(df: mp.mpf, location: mp.mpf, scale: mp.mpf, x: mp.mpf) -> mp.mpf:
    z = (x - location) / scale
    if df == INF:
        return -z * z / 2 - mp.log(2 * mp.pi) / 2 - mp.log(scale)
    return -log_beta(df / 2, mp.mpf(0.5)) - mp.log(df) / 2 - (df + 1) / 2 * mp.log1p(z * z / df) - mp.log(scale)


def student_cdf(df: mp.mpf, location: mp.mpf, scale: mp.mpf, x: mp.mpf) -> mp.mpf:
    z = (x - location) / scale
    if df == INF:
        return mp.ncdf(z)
    tail = share(df / 2, mp.mpf(0.5), df / (df + z * z)) / 2
    return 1 - tail if z > 0 else tail


def gamma_cdf(a: mp.mpf, rate: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.gammainc(a, 0, rate * x, regularized=True)


def inverse_gamma_cdf(a: mp.mpf, scale: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.gammainc(a, scale / x, mp.inf, regularized=True)


def cauchy_cdf(location: mp.mpf, scale: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.acot(-(x - location) / scale) / mp.pi + (1 if x > location else 0)


def least_gamma_quantile(a: mp.mpf, rate: mp.mpf, q: mp.mpf) -> mp.mpf:
    """Where exp (-rate x) is 1."""
    return (q * mp.gamma(a + 1)) ** (1 / a) / rate


def cauchy_quantile(location: mp.mpf, scale: mp.mpf, q: mp.mpf) -> mp.mpf:
    return location - scale * mp.cot(mp.pi * q)


def binomial(n: int, p: mp.mpf, k: int) -> mp.mpf:
    return mp.log(mp.binomial(n, k)) + part(mp.mpf(k), p) + part(mp.mpf(n - k), 1 - p)


def binomial_cdf(n: int, p: mp.mpf, k: int) -> mp.mpf:
    return share(mp.mpf(n - k), mp.mpf(k + 1), 1 - p)


def negative_binomial(r: mp.mpf, p: mp.mpf, k: int) -> mp.mpf:
    return mp.loggamma(k + r) - mp.loggamma(k + 1) - mp.loggamma(r) + r * mp.log(p) + part(mp.mpf(k), 1 - p)


def poisson(rate: mp.mpf, k: int) -> mp.mpf:
    return part(mp.mpf(k), rate) - rate - mp.loggamma(k + 1)


def gamma_entropy(a: mp.mpf, rate: mp.mpf) -> mp.mpf:
    return a - mp.log(rate) + mp.loggamma(a) + (1 - a) * mp.psi(0, a)


def beta_entropy(a: mp.mpf, b: mp.mpf) -> mp.mpf:
    slopes = (a + b - 2) * mp.psi(0, a + b) - (a - 1) * mp.psi(0, a) - (b - 1) * mp.psi(0, b)
    return log_beta(a, b) + slopes


def student_entropy(df: mp.mpf, _: mp.mpf, scale: mp.mpf) -> mp.mpf:
    if df == INF:
        return mp.log(2 * mp.pi * mp.e * scale**2) / 2
    half = (df + 1) / 2
    slopes = half * (mp.psi(0, half) - mp.psi(0, df / 2))
    return slopes + mp.log(df) / 2 + log_beta(df / 2, mp.mpf(0.5)) + mp.log(scale)


FORMULAS: dict[str, tuple[str, Callable, list[tuple]]] = {
    "Gamma": ("logpdf", gamma, [(1, 1.5, 0), (0.5, 1.5, 1e-30), (25, 1.5, 10), (1e4, 2, 5e3), (1e6, 1.5, 6.6e5)]),
    "Inverse_gamma": ("logpdf", inverse_gamma, [(3, 1.5, 1e-4), (30, 1.5, 0.05), (1e5, 2e5, 2), (1, 1, 1e10)]),
    "Beta": (
        "logpdf",
        beta,
        [(1, 1, 0), (1, 1, 1), (2, 1, 1), (1, 0.5, 0), (30, 40, 0.4), (1e5, 2e5, 0.3333), (0.5, 30, 0.9)],
    ),
    "Student_t": (
        "logpdf",
        student,
        [(INF, 1, 2, 4), (1e20, 1, 2, 4), (1e10, 0, 1, 3), (3.5, 1, 2, 1e10), (0.125, 0, 1, 1e-5)],
    ),
    "Poisson": ("logpmf", poisson, [(0.5, 0), (700, 600), (700, 10), (1e6, 1000000), (1e6, 999000)]),
    "Binomial": (
        "logpmf",
        binomial,
        [(7, 0.0, 0), (7, 1.0, 7), (0, 0.25, 0), (1000, 0.3, 300), (1000000, 1e-6, 2), (1000000, 0.25, 250300)],
    ),
    "Negative_binomial": (
        "logpmf",
        negative_binomial,
        [(2.5, 1, 0), (1e-3, 0.25, 4), (2.5, 0.01, 3000), (1e6, 0.9921875, 8000)],
    ),
}
MORE: list[tuple[str, str, Callable, list[tuple]]] = [
    (
        "cdf",
        "Student_t",
        student_cdf,
        [
            (INF, 0, 1, -3),
            (1e20, 0, 1, -3),
            (1e10, 0, 1, -3),
            (1e10, 0, 1, 0.001),
            (3.5, 1, 2, -1e9),
            (0.125, 0, 1, -1e-5),
            (4, 0, 1, 0),
        ],
    ),
    ("cdf", "Cauchy", cauchy_cdf, [(1, 2, -1e10), (1, 2, -3), (1, 2, 30)]),
    ("quantile", "Cauchy", cauchy_quantile, [(1, 2, 1e-30), (1, 2, 1e-5), (1, 2, 0.9999)]),
    ("quantile", "Gamma", least_gamma_quantile, [(2**-6, 1, 2**-16), (2**-6, 1, 2**-15)]),
    ("cdf_discrete", "Binomial", binomial_cdf, [(1000000, 1e-6, 0), (1000000, 1e-6, 2), (40, 0.25, 9)]),
    ("entropy", "Gamma", gamma_entropy, [(0.5, 1.5), (25, 1.5), (1e6, 1.5)]),
    ("entropy", "Beta", beta_entropy, [(0.5, 2), (30, 40), (1e5, 2e5)]),
    ("entropy", "Student_t", student_entropy, [(3, 0, 2), (50, 0, 2), (1e10, 0, 2), (1e20, 0, 2), (INF, 0, 2)]),
]

# The cumulative probability at the quantile is the share itself: where it, or what is left of it to 1, is small.
ENDS: list[tuple[str, Callable, Callable, list[tuple]]] = [
    ("Gamma", gamma_cdf, lambda a, rate: stats.gamma(a, scale=1 / rate), [(2.5, 1.5), (0.25, 1.5), (1e3, 2)]),
    ("Inverse_gamma", inverse_gamma_cdf, lambda a, s: stats.invgamma(a, scale=s), [(3.25, 1.5), (30, 2)]),
    ("Beta", share, stats.beta, [(2, 3.5), (0.5, 0.5), (300, 400)]),
    ("Student_t", student_cdf, stats.t, [(3.5, 1, 2), (1, 0, 1), (1e5, 0, 1)]),
]
SHARES = (1e-10, 1e-5, 0.4999, 0.5001, 0.9999)
# What has no digits to lose: [call, distribution, point, value]
LIMITS = [
    ("logpdf", "Uniform", [-1.0, 3.0], NAN, NAN), ("logpdf", "Uniform", [-1.0, 3.0], 3.5, -INF),
    ("logpdf", "Gamma", [0.5, 1.0], 0.0, INF), ("logpdf", "Gamma", [2.5, 1.0], 0.0, -INF),
    ("logpdf", "Gamma", [1e3, 1.0], 0.0, -INF), ("logpdf", "Gamma", [1e3, 1.0], INF, -INF),
    ("logpdf", "Beta", [1.0, 1.0], NAN, NAN), ("logpdf", "Beta", [30.0, 30.0], 0.0, -INF),
    ("logpdf", "Beta", [0.5, 0.5], 1.0, INF), ("logpdf", "Student_t", [INF, 0.0, 1.0], -INF, -INF),
    ("cdf", "Student_t", [INF, 0.0, 1.0], INF, 1.0), ("cdf", "Student_t", [3.0, 0.0, 1.0], -INF, 0.0),
    ("cdf", "Cauchy", [1.0, 2.0], INF, 1.0), ("cdf", "Cauchy", [1.0, 2.0], -INF, 0.0),
    ("quantile", "Student_t", [3.0, 1.0, 2.0], 0.5, 1.0), ("quantile", "Student_t", [3.0, 1.0, 2.0], 0.0, -INF),
    ("quantile", "Cauchy", [1.0, 2.0], 0.0, -INF), ("quantile", "Half_cauchy", [2.0], 1.0, INF),
    ("quantile", "Gamma", [2.0, 1.0], 1.0, INF), ("quantile", "Inverse_gamma", [2.0, 1.0], 0.0, 0.0),
    ("quantile", "Beta", [2.0, 1.0], 1.0, 1.0), ("quantile", "Student_t", [0.125, 0.0, 1.0], 1e-40, -INF),
    ("logpmf", "Geometric", [1.0], 0, 0.0), ("logpmf", "Geometric", [1.0], 1, -INF),
    ("logpmf", "Bernoulli", [0.0], 0, 0.0), ("logpmf", "Bernoulli", [0.0], 1, -INF),
    ("logpmf", "Binomial", [7, 0.0], 1, -INF), ("logpmf", "Poisson", [0.0], 0, 0.0),
    ("logpmf", "Poisson", [0.0], 30, -INF), ("logpmf", "Negative_binomial", [2.5, 1.0], 1, -INF),
]  # fmt: skip


def single(x: float | int) -> float | int:
    return x if isinstance(x, int) else float(np.float32(x))


def value(formula: Callable, numbers: list) -> float:
    return float(mp.re(formula(*(x if isinstance(x, int) else mp.mpf(x) for x in numbers))))


def quantile(cdf: Callable, parameters: list, q: float, near: float) -> float:
    """By the secant method from SciPy's number."""
    goal, given = mp.mpf(q), [mp.mpf(x) for x in parameters]
    return float(mp.findroot(lambda x: cdf(*given, x) / goal - 1, (near, near * 0.9999999), tol=1e-40))


def made() -> list:
    """[function, distribution, parameters, point or nothing, value]"""
    floats = {name: (lambda x: float(x)) for name in ("Gamma", "Inverse_gamma", "Beta", "Student_t", "Cauchy")}
    rows = []
    for call, name, formula, points in [*((c, n, f, p) for n, (c, f, p) in FORMULAS.items()), *MORE]:
        for point in points:
            numbers = [single(floats.get(name, lambda x: x)(x)) for x in point]
            if name in ("Poisson", "Negative_binomial"):
                numbers[:-1] = map(float, numbers[:-1])
            given, at = (numbers, None) if call == "entropy" else (numbers[:-1], numbers[-1])
            rows.append([call, name, given, at, value(formula, numbers)])
    for name, cdf, family, choices in ENDS:
        for parameters in choices:
            given = [single(float(x)) for x in parameters]
            near = family(*given).ppf
            rows += [["quantile", name, given, q, quantile(cdf, given, q, near(q))] for q in map(single, SHARES)]
    rows += [[c, n, list(map(single, p)), single(x), v] for c, n, p, x, v in LIMITS]
    return rows


if __name__ == "__main__":
    lines = (json.dumps(row) for row in made())
    Path(__file__).with_name("densities.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
