"""Special functions at hard points beside mpmath (`references/hard.py`), in units of the last place."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import pytest
from conftest import ENGINES

CASES = json.loads((Path(__file__).parent / "references" / "hard.json").read_text())


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


@ENGINES
@pytest.mark.parametrize("single", [False, True], ids=["f64", "f32"])
def test_hard_points(dpl, engine: tuple[str, ...], single: bool) -> None:
    def number(x: float | int) -> str:
        return f"({x!r}f32)" if single and isinstance(x, float) else f"({x!r})"

    lines = [f"do print (Special.{name} {' '.join(map(number, xs))})\n" for name, xs, _ in CASES]
    run = dpl("run", "--engine", *engine, "-", stdin="".join(lines))
    assert run.returncode == 0, run.stderr
    wrong = [
        f"{name} {xs}: {got}, not {want}"
        for (name, xs, want), got in zip(CASES, run.stdout.split(), strict=True)
        if not abs(float(got) - want) <= most(name, want, single)
    ]
    assert not wrong, "\n".join(wrong)
