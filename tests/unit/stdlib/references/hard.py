"""Makes `hard.json`: special functions at hard points by mpmath:  pip install mpmath numpy; python hard.py

A point is a number of f32, so that it is exact in both types: next to poles and roots, where formulas meet, at the ends
of the range, with parameters that are tiny or huge."""

from __future__ import annotations

import json
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60


def log_beta(a: mp.mpf, b: mp.mpf) -> mp.mpf:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def lower(a: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def share(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    return mp.betainc(a, b, 0, x, regularized=True)


def inverse(q: mp.mpf) -> mp.mpf:
    """The x with erfc x = q."""
    if q > 1e-10:
        return mp.erfinv(1 - q)
    return mp.findroot(lambda x: mp.log(mp.erfc(x)) - mp.log(q), mp.sqrt(-mp.log(q)))


ONE = {
    "gamma": (mp.gamma, [1e-37, 1e-20, 0.5, 0.999999, 1.0000001, 1.4616321, 2.0000002, 7.3, 12.7, 19.99, 20.0, 25.3,
                         34.5, 35.0, -1e-20, -0.5, -0.9999999, -1.0000001, -2.0000002, -5.5, -10.3, -30.5]),
    "digamma": (mp.digamma, [1e-30, 1e-5, 0.3, 1.0, 1.4616321, 1.4616, 9.9, 10.1, 1e5, 1e30, -0.5, -0.9999999, -3.7]),
    "erfc": (mp.erfc, [-5.0, -1e-10, 0.0, 0.4999999, 0.5, 0.50000006, 2.0, 5.0, 5.9999995, 6.0, 6.0000005, 9.19]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x),
              [-6.0, -0.5, 0.0, 0.4999999, 0.5, 3.3, 5.9999995, 6.0, 1e4, 9.9e7, 1.1e8, 1e25]),
    "erfcinv": (inverse,
                [1e-37, 1e-20, 1e-10, 1e-4, 0.4999999, 0.5, 0.9999999, 1.0, 1.0000001, 1.5, 1.5000001, 1.9999]),
    "erfinv": (mp.erfinv, [1e-37, 1e-8, 0.4999999, 0.5, 0.50000006, 0.99, 0.9999999, 0.99999994, -0.9999999, -1e-5]),
}  # fmt: skip
MORE = {
    "lbeta": (log_beta, [(1e-20, 1.0), (1e-5, 1e-5), (1e-3, 1e6), (0.5, 0.5), (1.0, 1e7), (9.9, 9.9), (10.0, 10.0),
                         (1e6, 1e6), (1e10, 3.0), (1e20, 1e-3), (1e15, 1e15), (0.5, 1e8)]),
    "beta": (mp.beta, [(1e-10, 1e-10), (0.5, 0.5), (1e-5, 1e5), (20.0, 20.0), (60.0, 60.0)]),
    "binomial": (mp.binomial, [(5.0, 2.0), (60.0, 30.0), (100.0, 3.0), (0.5, 0.25), (1e6, 2.0), (1e7, 1.5)]),
    "gammainc": (lower, [(1e-5, 1e-5), (0.5, 1e-20), (2.0, 1e-10), (3.0, 20.0), (10.0, 11.0), (100.0, 90.0),
                         (100.0, 100.0), (1e4, 1e4), (1e4, 9.9e3), (1e5, 1e5), (30.0, 1.0)]),
    "gammaincc": (upper, [(0.5, 1e-3), (0.5, 50.0), (1.0, 80.0), (3.0, 20.0), (10.0, 9.9), (10.0, 11.0),
                          (100.0, 130.0), (1e4, 1e4), (1e4, 1.02e4), (1e5, 1e5), (30.0, 80.0)]),
    "betainc": (share, [(1e-3, 1e-3, 0.5), (0.5, 0.5, 1e-20), (0.5, 0.5, 0.9999999), (2.0, 3.0, 1e-10),
                        (30.0, 40.0, 0.1), (30.0, 40.0, 0.4285714), (300.0, 400.0, 0.43), (3e3, 4e3, 0.4285714),
                        (5.0, 1e5, 1e-4), (1e5, 5.0, 0.9999), (0.01, 50.0, 0.5), (50.0, 0.01, 0.9)]),
}  # fmt: skip
ORDERS = {
    "polygamma": (mp.polygamma, (1, 2, 4), [1e-5, 0.3, 1.0, 9.9, 15.5, 1e4, -0.5, -3.3]),
    "bessel_j": (mp.besselj, (0, 1, 3, 10), [1e-10, 0.5, 1.9, 10.0, 24.9, -3.0, 1000.1, -1e5, 1e12]),
    "bessel_i": (mp.besseli, (0, 1, 3, 10), [1e-10, 0.5, 1.9, 2.1, 10.0, 87.0, -3.0]),
    "bessel_k": (mp.besselk, (0, 1, 3, 10), [1e-3, 0.1, 2.0, 10.0, 80.0]),
    "bessel_y": (mp.bessely, (0, 1, 3, 10), [1e-3, 0.5, 1.9999999, 2.0, 10.0, 24.9, 25.1]),
}
# Next to roots of the Bessel functions, where f64 has the digits of the largest values only.
ROOTS = {
    "bessel_j": (mp.besselj, [(0, 2.4048256), (0, 5.5200781), (1, 3.8317060), (1, 10.173468)]),
    "bessel_y": (mp.bessely, [(0, 0.8935770), (0, 3.9576784), (1, 2.1971413)]),
}


def single(x: float | int) -> float | int:
    return x if isinstance(x, int) else float(np.float32(x))


def made() -> list:
    """[function, arguments, value]: an integer argument is an order."""
    cases = [(name, fn, (x,)) for name, (fn, xs) in ONE.items() for x in xs]
    cases += [(name, fn, xs) for name, (fn, points) in MORE.items() for xs in points]
    cases += [(name, fn, (n, x)) for name, (fn, orders, xs) in ORDERS.items() for n in orders for x in xs]
    cases += [(name, fn, xs) for name, (fn, points) in ROOTS.items() for xs in points]
    points = [(name, fn, [single(x) for x in xs]) for name, fn, xs in cases]
    exact = [(name, fn, xs, [x if isinstance(x, int) else mp.mpf(x) for x in xs]) for name, fn, xs in points]
    return [[name, xs, float(mp.re(fn(*arguments)))] for name, fn, xs, arguments in exact]


if __name__ == "__main__":
    rows = (json.dumps(row) for row in made())
    Path(__file__).with_name("hard.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")
