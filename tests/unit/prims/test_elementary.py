"""The elementary functions: errors beside mpmath, special values as IEEE 754 and C99 (annex F) say, order at joints."""

from __future__ import annotations

import math

import pytest
from dpl.prims import elementary
from true_functions import ALLOWED, JOINTS, TRUE, TYPES, error, fitting, hard_points, neighbours, random_points

INF, NAN = math.inf, math.nan
ALL = [(name, ty) for name in TRUE for ty in TYPES]
FEW, MANY = 60, 17_000  # points of each function and type; in all MANY are 10^6

# name: arguments and results
SPECIAL: dict[str, list[tuple[float, ...]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (10.0, 1024.0), (-149.0, 2.0**-149)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (-1e4, -1.0), (1e-40, 1e-40)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (-1e4, -INF), (1e-40, 1e-40)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (-1e4, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (30.0, 1.0), (1e-40, 1e-40)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log2": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (8.0, 3.0), (2.0**-149, -149.0)],
    "log10": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), *((10.0**k, k) for k in range(1, 11))],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e-40, 1e-40)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (INF, NAN), (1e-40, 1e-40)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (2.0, NAN), (INF, NAN), (1e-40, 1e-40)],
    "acos": [(1.0, 0.0), (2.0, NAN), (-INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (27.0, 3.0), (-8.0, -2.0), (2.0**-147, 2.0**-49)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "atan2": [(0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (-1.0, INF, -0.0)],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (3.0, 4.0, 5.0), (-0.0, 0.0, 0.0), (3e30, 4e30, 5e30)],
    "pow": [
        *((x, 0.0, 1.0) for x in (0.0, 2.0, INF, -INF, NAN)), *((1.0, y, 1.0) for y in (INF, -INF, NAN, -3.0)),
        (0.0, -1.0, INF), (-0.0, -1.0, -INF), (0.0, -2.0, INF), (-0.0, -2.0, INF), (-0.0, -0.5, INF), (0.0, -INF, INF),
        (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (0.0, 0.5, 0.0), (-1.0, INF, 1.0), (-1.0, -INF, 1.0),
        (-2.0, 0.5, NAN), (0.5, -INF, INF), (2.0, -INF, 0.0), (0.5, INF, 0.0), (2.0, INF, INF), (-INF, -3.0, -0.0),
        (-INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF), (INF, -1.0, 0.0), (INF, 1.0, INF), (-2.0, 3.0, -8.0),
        (2.0, 10.0, 1024.0), (9.0, 0.5, 3.0), (-1.0, 2.0**24 + 2.0, 1.0), (-1.0, 2.0**23 + 1.0, -1.0),
        (2.0, -149.0, 2.0**-149), (-8.0, -1.0, -0.125), (1e-30, 90.0, 0.0), (-1e30, 91.0, -INF), (-INF, 0.5, INF),
    ],
}  # fmt: skip


def same(a: float, b: float) -> bool:
    return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)


def worst(name: str, ty: str, points) -> tuple[float, tuple[float, ...]]:
    run = elementary.function(name, ty)
    return max((error(name, run(*args), args, ty), args) for args in points)


@pytest.mark.parametrize(("name", "ty"), ALL)
def test_errors(name: str, ty: str) -> None:
    found, place = worst(name, ty, [*random_points(name, ty, FEW), *hard_points(name, ty)])
    assert found <= ALLOWED[name], place


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ty"), ALL)
def test_errors_at_many_points(name: str, ty: str) -> None:
    found, place = worst(name, ty, random_points(name, ty, MANY, seed=2))
    assert found <= ALLOWED[name], place


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, ty: str) -> None:
    run, fit = elementary.function(name, ty), fitting(ty)
    for *args, result in SPECIAL[name]:
        assert same(run(*map(fit, args)), fit(result)), args
    if name not in ("pow", "hypot"):
        assert math.isnan(run(*[NAN] * elementary.arity(name)))


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("name", [name for name in JOINTS if name != "cosh"])
def test_order_at_joints(name: str, ty: str) -> None:
    """The functions rise or fall where formulas meet, too.  (cosh near 0 is flatter than its error.)"""
    run, fit = elementary.function(name, ty), fitting(ty)
    for joint in JOINTS[name]:
        xs = neighbours(fit(joint), ty, 20)
        values = [run(x) for x in xs if name != "acosh" or x >= 1.0]
        assert values in (sorted(values), sorted(values, reverse=True)), joint


def test_every_function_is_measured() -> None:
    parts = {"squares", "cosine", "turn", "share", "overlap"}  # of slopes, which `tests/agree/test_digits.py` measures
    assert elementary.NAMES.keys() - TRUE.keys() - parts == {"sin_far", "cos_far", "tan_far"}
