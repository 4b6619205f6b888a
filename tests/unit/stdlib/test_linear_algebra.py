"""Module Linalg against NumPy, in both engines, with LAPACK and with the library's own algorithms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import ENGINES, ROOT, assert_same_output

LAPACK = ("on", "off")
PROGRAMS = ROOT / "tests" / "agree"

PROGRAM = """
let a = {a}
let tall = {tall}
let b = {b}
let spd = a @ transpose a + Linalg.identity {n}
do print (Linalg.solve a b)
do print (Linalg.solve a tall)
do print (Linalg.inverse a)
do print (Linalg.det a)
do print (Linalg.logdet spd)
do print (Linalg.cholesky spd)
do print (fst (Linalg.eigh spd))
do print (let (_, s, _) = Linalg.svd tall in s)
do print (let (q, r) = Linalg.qr tall in (q @ r, transpose q @ q, [for row in r -> minimum row]))
do print (let (u, s, v) = Linalg.svd tall in (u @ Linalg.diag s @ transpose v, transpose u @ u, transpose v @ v))
do print (let (values, v) = Linalg.eigh spd in (v @ Linalg.diag values @ transpose v, transpose v @ v))
do print (let (l, u, order) = Linalg.lu a in l @ u - gather a order)
do print (Linalg.lstsq tall b)
do print (Linalg.lstsq (transpose tall) {c})
do print (Linalg.expm (0.1 * (a + transpose a)))
do print (Linalg.triangular_solve spd b, Linalg.triangular_solve_upper spd b)
"""


def expected(a: np.ndarray, tall: np.ndarray, b: np.ndarray, c: np.ndarray) -> list:
    n, m = tall.shape
    spd = a @ a.T + np.eye(n)
    r = np.linalg.qr(tall)[1]
    r = r * np.sign(np.diag(r))[:, None]
    values, v = np.linalg.eigh(0.1 * (a + a.T))
    return [
        np.linalg.solve(a, b), np.linalg.solve(a, tall), np.linalg.inv(a), np.linalg.det(a),
        np.linalg.slogdet(spd)[1], np.linalg.cholesky(spd), np.linalg.eigvalsh(spd),
        np.linalg.svd(tall, compute_uv=False), (tall, np.eye(m), r.min(axis=1)),
        (tall, np.eye(m), np.eye(m)), (spd, np.eye(n)), np.zeros((n, n)), np.linalg.lstsq(tall, b)[0],
        np.linalg.lstsq(tall.T, c)[0], v @ np.diag(np.exp(values)) @ v.T,
        (np.linalg.solve(np.tril(spd), b), np.linalg.solve(np.triu(spd), b)),
    ]  # fmt: skip


def numbers(line: str) -> np.ndarray:
    return np.array(
        [float(x) for x in line.replace("(", "").replace(")", "").replace("[", "").replace("]", "").split(",")]
    )


def flat(value) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in value]) if isinstance(value, tuple) else np.ravel(value)


@pytest.mark.parametrize("lapack", LAPACK)
@ENGINES
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (7, 7), (12, 2)])
def test_as_numpy(dpl, tmp_path, n: int, m: int, engine: tuple[str, ...], lapack: str) -> None:
    rng = np.random.default_rng(100 * n + m)
    given = [rng.standard_normal(shape) for shape in ((n, n), (n, m), (n,), (m,))]
    file = tmp_path / "it.dp"
    texts = dict(zip(("a", "tall", "b", "c"), (json.dumps(x.tolist()) for x in given), strict=True))
    file.write_text(PROGRAM.format(n=n, **texts), encoding="utf-8")
    run = dpl("run", "--no-cache", "--engine", *engine, file, DPL_LAPACK=lapack)
    assert run.returncode == 0, run.stderr
    for line, want in zip(run.stdout.splitlines(), expected(*given), strict=True):
        np.testing.assert_allclose(numbers(line), flat(want), rtol=1e-8, atol=1e-8)


@ENGINES
def test_without_lapack(dpl, engine: tuple[str, ...]) -> None:
    program = PROGRAMS / "programs" / "linalg.dp"
    run = dpl("run", "--no-cache", "--engine", *engine, program, DPL_LAPACK="off")
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, program.with_suffix(".out").read_text(encoding="utf-8"))
