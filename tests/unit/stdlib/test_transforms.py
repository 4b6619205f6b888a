"""Module Fft: what transforms cost, counted."""

from __future__ import annotations

import json

TRANSFORMS = """
let real (x : float[n]) = Fft.rfft x[:n - 1]
let whole (x : float[n]) = let x = x[:n - 1] in Fft.fft (x, x)
"""


def test_real_numbers_cost_less_than_complex_ones(dpl, tmp_path) -> None:
    """Of odd lengths, too, if they are products: 15, 63, 255."""
    path = tmp_path / "transforms.dp"
    path.write_text(TRANSFORMS)
    run = dpl("bench", "--cost", "--json", path)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    real, whole = ({cost["size"]: cost["operations"] for cost in line["costs"]} for line in lines)
    assert all(real[n] < whole[n] for n in (16, 64, 256)), (real, whole)
