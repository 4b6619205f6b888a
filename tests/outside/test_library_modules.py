"""Each module of the library through both engines and an executable, at f64 and f32: the same numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from building import done

HEAD = """let num (x : float) : F = of_float x
let wave (n : int) (s : float) : F[n] = [for i < n -> num (sin (s * float (i + 1)))]
let grid (n : int) (m : int) (s : float) : F[n, m] = [for i < n -> [for j < m -> num (sin (s * float (i * m + j + 1)))]]
let key = Random.key 7
"""
TEXT = Path(__file__).with_name("library_modules.txt").read_text(encoding="utf-8")
PROGRAMS = dict(part.split("\n", 1) for part in TEXT.split("== ")[1:])
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")
ALIKE = {"float": 1e-12, "f32": 5e-6}  # derivatives, products and factorizations have last digits of their own


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_module(dpl, name: str, tmp_path: Path) -> None:
    printed = {kind: every_way(dpl, name, kind, tmp_path) for kind in ("float", "f32")}
    alike(printed["f32"], printed["float"], 2e-5)


def every_way(dpl, name: str, kind: str, folder: Path) -> str:
    """What native code prints; the interpreter and an executable print numbers alike."""
    program = folder / f"{kind}.dp"
    program.write_text(re.sub(r"\bF\b", kind, HEAD + PROGRAMS[name]).replace("FILE", str(folder / kind)))
    native, interpreted = (dpl("run", "--engine", engine, program) for engine in ("native", "interp"))
    built = dpl("build", program, "-o", folder / kind)
    for run in (native, interpreted, built):
        assert run.returncode == 0, run.stderr
    alike(interpreted.stdout, native.stdout, ALIKE[kind])
    alike(done([folder / kind], folder).stdout, native.stdout, ALIKE[kind])
    return native.stdout


def alike(got: str, want: str, most: float) -> None:
    ours, theirs = NUMBER.findall(got), NUMBER.findall(want)
    assert len(ours) == len(theirs) > 0, got
    for one, other in zip(map(float, ours), map(float, theirs), strict=True):
        is_near = abs(one - other) <= most * max(1, abs(one), abs(other))
        assert is_near or repr(one) == repr(other), (one, other)  # NaN, infinity
