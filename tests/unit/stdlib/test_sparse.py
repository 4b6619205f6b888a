"""Module Sparse against SciPy (`references/make.py`), its derivatives against those of dense matrices, its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ENGINES

HEAD = """
let near what (tolerance : float) a b =
  if not (Tree.norm (Tree.sub a b) <= tolerance * (1.0 + Tree.norm b)) then print $"{what}: {a}, not {b}"
"""

CASE = """
let triples : (int * int * NUMBER)[?] = TRIPLES
let a = Sparse.of_triples ROWS COLUMNS triples
let (x, y) : NUMBER[?] * NUMBER[?] = (X, Y)
do assert (a.starts = STARTS && a.places = PLACES)
do near "values" PRECISION a.values VALUES
do near "matvec" PRECISION (Sparse.matvec a x) AX
do near "matvec_transposed" PRECISION (Sparse.matvec_transposed a y) AY
do near "transposed" PRECISION (Sparse.matvec (Sparse.transposed a) y) AY
do near "matmul" PRECISION (Sparse.matmul a [for e in x -> [e, 2.0 * e]]) [for e in AX -> [e, 2.0 * e]]
let at = Sparse.transposed a
do near "matmul_sparse" PRECISION (Sparse.matvec (Sparse.matmul_sparse a at) y) (Sparse.matvec a (Sparse.matvec at y))
do near "of_dense" PRECISION (Sparse.of_dense (Sparse.to_dense a)).values a.values
do near "of_triples" PRECISION (Sparse.of_triples ROWS COLUMNS (Sparse.to_triples a)).values a.values
let ones : (int * int * NUMBER)[?] = [for i < ROWS -> (i, i, 1.0)]
let square = Sparse.of_triples ROWS ROWS (ones ++ Sparse.to_triples (
  Sparse.of_dense (Sparse.matmul a (Sparse.to_dense (Sparse.transposed a)))))
do near "diagonal" PRECISION (Sparse.diagonal square) [for i < ROWS -> (Sparse.to_dense square)[i, i]]
do near "cg" PRECISION (Sparse.cg (0.1 * PRECISION) square y) SOLUTION
"""

SLOPES = """
let places = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (1, 2), (2, 1)]
let of_values (v : 's[7]) = Sparse.of_triples 3 3 [for i < 7 -> (fst places[i], snd places[i], v[i])]
let start = [4.0, 1.0, 1.0, 3.0, 5.0, 0.5, 0.5]
let b = [1.0, -2.0, 0.7]
let both what f g =
  near $"{what}: value" 1e-11 (f start) (g start);
  near $"{what}: reverse" 1e-10 (grad f start) (grad g start);
  near $"{what}: forward" 1e-10 (snd (jvp f start start)) (snd (jvp g start start));
  near $"{what}: second" 1e-9 (Ad.hvp f start start) (Ad.hvp g start start)
let dense v = (Sparse.to_dense (of_values v) :> float[3, 3])
let symmetric v = 0.5 * (dense v + transpose (dense v))
let half v = Sparse.of_triples 3 3 (
  [for (i, j, x) in Sparse.to_triples (of_values v) -> (i, j, 0.5 * x)]
    ++ [for (i, j, x) in Sparse.to_triples (of_values v) -> (j, i, 0.5 * x)])
do both "matvec" (fun v -> sum (Sparse.matvec (of_values v) (v[0:3]) ** 2)) (fun v -> sum ((dense v @ v[0:3]) ** 2))
let squared v = Sparse.to_dense (Sparse.matmul_sparse (of_values v) (of_values (v * v)))
do both "matmul_sparse" (fun v -> sum (flatten (squared v) ** 2)) (
  fun v -> sum (flatten (dense v @ dense (v * v)) ** 2))
do both "cg" (fun v -> sum (Sparse.cg 1e-14 (half v) (v[4] * b) ** 3)) (
  fun v -> sum (Linalg.solve (symmetric v) (v[4] * b) ** 3))
let by_matrix (a : float Sparse.matrix) = sum (Sparse.matvec a b ** 2)
do near "a gradient is a matrix" 1e-12 (grad by_matrix (of_values start)).values (
  let r = dense start @ b in [for (i, j, _) in Sparse.to_triples (of_values start) -> 2.0 * r[i] * b[j]])
"""

NAMES = ["ROWS", "COLUMNS", "TRIPLES", "X", "Y", "STARTS", "PLACES", "VALUES", "AX", "AY", "SOLUTION"]


def written(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return "(" + ", ".join(map(written, value)) + ")" if isinstance(value, tuple) else repr(value)


@ENGINES
@pytest.mark.parametrize("number", ["float", "f32"])
def test_sparse_matrices(dpl, engine: tuple[str, ...], number: str) -> None:
    program = HEAD
    for case in json.loads((Path(__file__).parent / "references" / "sparse.json").read_text()):
        values = dict(zip(NAMES, case, strict=True))
        values["TRIPLES"] = [tuple(triple) for triple in values["TRIPLES"]]
        text = CASE.replace("PRECISION", "1e-12" if number == "float" else "1e-5").replace("NUMBER", number)
        for name in sorted(NAMES, key=len, reverse=True):
            text = text.replace(name, written(values[name]))
        program += text
    run = dpl("run", "--engine", *engine, "-", stdin=program)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


@ENGINES
def test_slopes_of_sparse_matrices(dpl, engine: tuple[str, ...]) -> None:
    run = dpl("run", "--engine", *engine, "-", stdin=HEAD + SLOPES)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Sparse.of_triples 2 2 [(0, 2, 1.0)]", "Sparse.of_triples: (0, 2, 1.0) is outside of 2 rows and 2 columns"),
        ("Sparse.matvec (Sparse.of_dense [[1.0]]) [1.0, 2.0]", "Sparse.matvec: the matrix wants 1 elements, not 2"),
        ("Sparse.matmul_sparse (Sparse.of_dense [[1.0]]) (Sparse.of_dense [[1.0], [2.0]])", "wants 1 elements, not 2"),
        ("Sparse.cg 1e-9 (Sparse.of_dense [[1.0, 2.0]]) [1.0]", "Sparse.cg: 1 rows are not 2 columns"),
        ("Sparse.cg 1e-9 (Sparse.of_dense [[0.0, 1.0], [-1.0, 0.0]]) [1.0, 1.0]", "is the matrix symmetric"),
    ],
)
def test_errors_of_sparse_matrices(dpl, call: str, message: str) -> None:
    run = dpl("run", "-", stdin=f"do print ({call})\n")
    assert run.returncode == 1
    assert message in run.stderr
