"""Finds the coefficients of the polynomials in `lang/dpl/prims/elementary`, and writes `coefficients.py` there.

    python benchmarks/elementary/coefficients.py

Each polynomial is the one of its degree with the least greatest error (Remez 1934), relative to the function that it
is a part of.  It is found with 240 bits, and its coefficients are rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp

TARGET = Path(__file__).parents[2] / "lang" / "dpl" / "prims" / "elementary" / "coefficients.py"
GRID = 900
HEAD = '''"""Coefficients of polynomials, lowest first.  `benchmarks/elementary/coefficients.py` finds them and writes
this file; the errors are those before rounding, relative to the function."""

from __future__ import annotations

from dpl.prims.elementary.steps import Pair
'''

Function = Callable[[mp.mpf], mp.mpf]


@dataclass
class Fit:
    """P is close to `function` from `low` to `high`; an error e of P is an error `weight * e` of the result."""

    name: str
    what: str
    function: Function
    weight: Function
    low: mp.mpf
    high: mp.mpf
    terms: tuple[int, int]  # for f64 and f32


def remez(fit: Fit, terms: int) -> tuple[list[mp.mpf], mp.mpf]:
    """The coefficients, lowest first, and the greatest error."""
    middle, half = (fit.low + fit.high) / 2, (fit.high - fit.low) / 2
    grid = [middle - half * mp.cos(mp.pi * (i + mp.mpf(0.5)) / GRID) for i in range(GRID)]
    points = [(x, fit.function(x), fit.weight(x)) for x in grid]
    chosen = [i * (GRID - 1) // terms for i in range(terms + 1)]
    best: tuple[list[mp.mpf], mp.mpf] = ([], mp.inf)
    for _ in range(20):
        coefficients, level = through(points, chosen, terms)
        errors = [w * (f - mp.polyval(coefficients[::-1], x)) for x, f, w in points]
        greatest = max(map(abs, errors))
        if greatest < best[1]:
            best = coefficients, greatest
        chosen = alternating(errors, terms + 1)
        if greatest < level * 1.02 or len(chosen) <= terms:
            break
    return best


def through(points: list, chosen: list[int], terms: int) -> tuple[list[mp.mpf], mp.mpf]:
    """The polynomial whose errors at the chosen points are equal, with alternating signs."""
    matrix, right = mp.matrix(terms + 1, terms + 1), mp.matrix(terms + 1, 1)
    for row, k in enumerate(chosen):
        x, f, w = points[k]
        for column in range(terms):
            matrix[row, column] = w * x**column
        matrix[row, terms] = (-1) ** row
        right[row] = f * w
    solution = mp.lu_solve(matrix, right)
    return [solution[i] for i in range(terms)], abs(solution[terms])


def alternating(errors: list[mp.mpf], count: int) -> list[int]:
    """Places of the greatest errors, with alternating signs."""
    places: list[int] = []
    for i, error in enumerate(errors):
        if not places or (errors[places[-1]] > 0) != (error > 0):
            places.append(i)
        elif abs(error) > abs(errors[places[-1]]):
            places[-1] = i
    while len(places) > count:
        if len(places) == count + 1:
            places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)
        else:
            pairs = range(len(places) - 1)
            least = min(pairs, key=lambda i: max(abs(errors[places[i]]), abs(errors[places[i + 1]])))
            del places[least : least + 2]
    return places


def odd_part(f: Function) -> Function:
    """(f x / x - 1) / x^2 as a function of x^2."""
    return lambda z: (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def log_rest(z: mp.mpf) -> mp.mpf:
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3


def fits() -> list[Fit]:
    mp.mp.prec = 240
    ln2, quarter, zero, wide = mp.log(2), mp.pi / 4, mp.mpf(0), mp.mpf("1.0001")
    s = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    return [
        Fit("EXP", "(e^r - 1 - r) / r^2, |r| <= log 2 / 2", lambda r: (mp.exp(r) - 1 - r) / r**2,
            lambda r: r * r / mp.exp(r), -ln2 / 2 * wide, ln2 / 2 * wide, (10, 5)),
        Fit("LOG", "(log ((1 + s) / (1 - s)) - 2 s) / s^3 by s^2, |s| <= 0.1716", log_rest,
            lambda z: z / 2, zero, s * s * wide, (7, 3)),
        Fit("SIN", "(sin x / x - 1) / x^2 by x^2, |x| <= pi / 4", odd_part(mp.sin),
            lambda z: z, zero, (quarter * wide) ** 2, (6, 3)),
        Fit("COS", "(cos x - 1 + x^2 / 2) / x^4 by x^2, |x| <= pi / 4",
            lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z * z, zero, (quarter * wide) ** 2, (6, 3)),
        Fit("SINH", "(sinh x / x - 1) / x^2 by x^2, |x| <= 1", odd_part(mp.sinh), lambda z: z, zero, wide, (7, 3)),
        Fit("ASIN", "(asin x / x - 1) / x^2 by x^2, |x| <= 1/2", odd_part(mp.asin),
            lambda z: z, zero, wide / 4, (12, 6)),
        Fit("ATAN", "(atan x / x - 1) / x^2 by x^2, |x| <= 7/16", odd_part(mp.atan),
            lambda z: z, zero, (wide * 7 / 16) ** 2, (11, 5)),
        Fit("CBRT", "the cube root of x, sqrt(1/2) <= x <= sqrt 2", mp.cbrt,
            lambda x: 1 / mp.cbrt(x), mp.sqrt(mp.mpf(1) / 2) / wide, mp.sqrt(mp.mpf(2)) * wide, (7, 4)),
        Fit("ERF", "-log (1 - erf x) / x - 9/8, 0 <= x <= 6", lambda x: -mp.log(mp.erfc(x)) / x - 1.125,
            lambda x: x * mp.erfc(x) / mp.erf(x), mp.mpf("1e-9"), mp.mpf(6), (26, 11)),
    ]  # fmt: skip


def rounded(x: mp.mpf, wide: bool) -> float:
    if wide:
        return float(x)
    with mp.workprec(24):
        return float(+x)


def listed(name: str, numbers: list[float]) -> str:
    lines, line = [], "   "
    for number in numbers:
        if len(line) + len(repr(number)) > 110:
            lines.append(line)
            line = "   "
        line += f" {number!r},"
    return "\n".join([f"    {name}=(", *("    " + part for part in [*lines, line]), "    ),"])


def pow_text() -> list[str]:
    """The rest of the logarithm in `pow`, which has f64 only."""
    s = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.0001")
    what = "(log ((1 + s) / (1 - s)) / 2 s - 1 - z / 3) / z^2 by z = s^2, |s| <= 0.1716"
    rest = Fit(
        "POW", what, lambda z: (log_rest(z) / 2 - mp.mpf(1) / 3) / z, lambda z: z**2, mp.mpf("1e-9"), s * s, (0, 0)
    )
    found, error = remez(rest, 10)
    lines = listed("POW", [float(x) for x in found]).split("\n")
    return [
        f"# {rest.what}; error 2^{mp.nstr(mp.log(error, 2), 4)}",
        "POW = (",
        *(line[4:] for line in lines[1:-1]),
        ")",
    ]


def angles_text() -> list[str]:
    """The angles of the ranges of `atan`."""
    angles = [mp.mpf(0), mp.atan(0.5), mp.pi / 4, mp.atan(1.5), mp.pi / 2]
    text = ["# 0, atan 1/2, atan 1, atan 3/2, atan infinity, each in two parts", "ANGLES = Pair("]
    for kind in ("f64", "f32"):
        high = [rounded(x, kind == "f64") for x in angles]
        low = [rounded(x - h, kind == "f64") for x, h in zip(angles, high, strict=True)]
        text += [f"    {kind}=(", f"        {tuple(high)!r},", f"        {tuple(low)!r},", "    ),"]
    return [*text, ")"]


def digits(bits: int) -> list[str]:
    """2 / pi, in hexadecimal."""
    with mp.workprec(bits + 60):
        number = f"{int(mp.floor(2 / mp.pi * mp.mpf(2) ** bits)):x}"
    lines = [f'    "{number[i : i + 100]}"' for i in range(0, len(number), 100)]
    return [*lines[:-1], lines[-1] + ","]


def main() -> None:
    text = [HEAD]
    for fit in fits():
        found = [remez(fit, terms) for terms in fit.terms]
        errors = ", ".join(f"2^{mp.nstr(mp.log(error, 2), 4)}" for _, error in found)
        text += [f"# {fit.what}; errors {errors}", f"{fit.name} = Pair("]
        for kind, (coefficients, _) in zip(("f64", "f32"), found, strict=True):
            text.append(listed(kind, [rounded(c, kind == "f64") for c in coefficients]))
        text.append(")")
        print(fit.name, errors)
    text += pow_text() + angles_text()
    bits = 24 * 50
    text += [f"TWO_OVER_PI_BITS = {bits}", "TWO_OVER_PI = int(", *digits(bits), "    16,", ")  # times 2^BITS"]
    TARGET.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
