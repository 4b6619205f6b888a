"""Special functions at hard points beside mpmath (`references/hard.py`), in units of the last place; distributions
there (`references/densities.py`)."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest
from conftest import ENGINES

REFERENCES = Path(__file__).parent / "references"
CASES = json.loads((REFERENCES / "hard.json").read_text())
DENSITIES = json.loads((REFERENCES / "densities.json").read_text())


def unit(x: float, single: bool) -> float:
    """The distance of floats next to x."""
    if not single:
        return math.ulp(x)
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(x)))
    (more,) = struct.unpack("<f", struct.pack("<I", bits + 1))
    return more - struct.unpack("<f", struct.pack("<f", abs(x)))[0]


def most(name: str, want: float, single: bool) -> float:
    """The difference that is allowed: next to roots of the Bessel functions f64 has their absolute error only."""
    if single:
        return 3.0 * unit(want, single)
    return 3e-15 if name.startswith("bessel") and abs(want) < 1e-6 else 1e-13 * abs(want)


def number(x: float | int, single: bool) -> str:
    if isinstance(x, int) or not single:
        return f"({x!r})"
    return f"({x!r}f32)" if math.isfinite(x) else f"(f32 ({x!r}))"


def printed(dpl, engine: tuple[str, ...], lines: list[str]) -> list[str]:
    run = dpl("run", "--engine", *engine, "-", stdin="".join(f"do print ({line})\n" for line in lines))
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@ENGINES
@pytest.mark.parametrize("single", [False, True], ids=["f64", "f32"])
def test_hard_points(dpl, engine: tuple[str, ...], single: bool) -> None:
    lines = [f"Special.{name} {' '.join(number(x, single) for x in xs)}" for name, xs, _ in CASES]
    wrong = [
        f"{name} {xs}: {got}, not {want}"
        for (name, xs, want), got in zip(CASES, printed(dpl, engine, lines), strict=True)
        if not abs(float(got) - want) <= most(name, want, single)
    ]
    assert not wrong, "\n".join(wrong)


@ENGINES
@pytest.mark.parametrize("single", [False, True], ids=["f64", "f32"])
def test_distributions_at_hard_points(dpl, engine: tuple[str, ...], single: bool) -> None:
    def call(name: str, family: str, parameters: list, at: float | None) -> str:
        given = ", ".join(number(x, single) for x in parameters)
        return f"Dist.{name} (Dist.{family} ({given})) {'' if at is None else number(at, single)}"

    def near(name: str, got: float, want: float) -> bool:
        if not math.isfinite(want):
            return got == want or (math.isnan(got) and math.isnan(want))
        least = unit(0.0, single) if name == "quantile" else 1e-9 if single else 1e-16
        return abs(got - want) <= (1e-6 if single else 1e-13) * abs(want) + least

    lines = [call(*case) for *case, _ in DENSITIES]
    wrong = [
        f"{line}: {got}, not {want}"
        for line, (name, *_, want), got in zip(lines, DENSITIES, printed(dpl, engine, lines), strict=True)
        if not near(name, float(got), want)
    ]
    assert not wrong, "\n".join(wrong)
