"""The rules of bulk operations as a table: at random sizes and points, forward = reverse = finite differences, of first
and second order, in both engines."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from conftest import EFFORTS

# by name: from a matrix `m` of two rows or more, and its first row `v`, to a float
RULES = {
    "products": "sum (sin (m @ v)) + sum (transpose m @ m @ sin v * v)"
    " + dot (v @ transpose m) (sum m @ transpose m)",
    "reduce": "reduce (fun a b -> a + b + v[0] * a * b) 0.0 v"
    " + sum (reduce (fun a b -> a * b + v * b) (ones (length v)) m)",
    "scan": "sum (scan (fun a b -> a * cos b + v[0]) 0.0 v) + sum (sum (sin (scan (fun a b -> a + a * b) v m)))",
    "zeros": "let z = { m with [0, 0] = 0.0; [1, 0] = m[1, 0] - m[1, 0] } in"
    " sum (prod z) + sum (sum (cumprod z)) + prod v",
    "sort": "dot (sort (sin (5.0 * v))) v + sum (flatten (gather m (argsort m[:, 0])) * sin (flatten m))",
    "scatter": "let at = [for i < length m -> i * 3 % length m] in let twice = [for i < length m -> i / 2] in "
    "sum (flatten (scatter_add m twice (m * m) * scatter m twice (sin m))) + sum (flatten (gather m at * m))",
    "extremes": "dot (maximum m) (minimum m) + maximum v * minimum v + norm v * std v"
    " + sum [for r in m -> logsumexp r]",
    "axes": "dot (sum m) (mean m) + sum [for r in m -> sum r * var r] + sum (flatten (softmax m * m))",
    "shapes": "sum (flatten (transpose m) * sin (flatten m)) + dot (v ++ v) (reverse (v ++ sin v)) "
    "+ sum (drop 1 m ++ take 1 m)[0] * sum (sin (m[1:length m, 0]))",
}  # fmt: skip

PROGRAM = """
let f m = let v = m[0] in {rule}
let roads (x : float[rows, columns]) (v : float[rows, columns]) =
  let slope s = Tree.dot (grad f (x + s * v)) v in
  print (snd (jvp f x v));
  print (slope 0.0);
  print ((f (x + 1e-5 * v) - f (x - 1e-5 * v)) / 2e-5);
  print (snd (jvp (fun x -> snd (jvp f x v)) x v));
  print (Tree.dot (snd (jvp (grad f) x v)) v);
  print (Tree.dot (grad (fun x -> snd (jvp f x v)) x) v);
  print ((slope 1e-5 - slope (-1e-5)) / 2e-5)
"""
ROADS = 7


def close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


@EFFORTS
@pytest.mark.parametrize("name", RULES)
def test_rule(dpl, tmp_path: Path, name: str, effort: str) -> None:
    rng = random.Random(name)
    program = PROGRAM.format(rule=RULES[name])
    for _ in range(2):
        rows, columns = rng.randint(2, 6), rng.randint(1, 6)
        x, v = ([[rng.uniform(-1.5, 1.5) for _ in range(columns)] for _ in range(rows)] for _ in range(2))
        program += f"do roads {json.dumps(x)} {json.dumps(v)}\n"
    file = tmp_path / "it.dp"
    file.write_text(program, encoding="utf-8")
    found = {}
    for engine, *how in (("interp",), ("native", effort)):
        run = dpl("run", "--engine", engine, *how, file)
        assert run.returncode == 0, run.stderr
        found[engine] = [float(line) for line in run.stdout.split()]
    assert all(close(a, b, 1e-9) for a, b in zip(found["interp"], found["native"], strict=True)), found
    assert len(found["native"]) == 2 * ROADS
    for at in range(0, 2 * ROADS, ROADS):
        forward, reverse, slope, *second, curvature = found["native"][at : at + ROADS]
        assert close(forward, reverse, 1e-9) and close(forward, slope, 1e-5), found
        assert all(close(road, second[0], 1e-9) and close(road, curvature, 1e-4) for road in second), found
