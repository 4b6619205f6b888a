"""The cost of Taylor mode: twice the order, four times the operations; a gradient is a constant times as dear."""

import json
from itertools import pairwise

JETS = """
let quotient (x : float[n]) = sum (Ad.jet n (fun t -> exp (sin t) / (1.0 + t * t)) x[0])
let powers (x : float[n]) = sum (Ad.jet n (fun t -> (1.0 + t) ** 2.5 + (1.0 + t) ** (-3) + t ** 3) x[0])
let loops (x : float[n]) = sum (Ad.jet n (fun t -> loop s = t for i < 10 do s * t + 1.0) x[0])
let products (x : float[n]) = sum (Ad.jet n (fun t -> sum ([[t, 1.0], [t * t, 2.0]] @ [t, exp t])) x[0])
"""


def test_operations_grow_with_the_square_of_the_order(dpl, tmp_path) -> None:
    file = tmp_path / "jets.dp"
    file.write_text(JETS, encoding="utf-8")
    run = dpl("bench", "--cost", "--json", file)
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [cost["name"] for cost in found] == ["quotient", "powers", "loops", "products"]
    for cost in found:
        counts = [size["operations"] for size in cost["costs"]]
        assert all(after <= 4.2 * before for before, after in pairwise(counts)), cost
        assert all(size["ratio"] < 4.5 for size in cost["costs"]), cost
