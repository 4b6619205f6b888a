"""Module Linalg against NumPy, in both engines, with LAPACK and with the library's own algorithms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import ENGINES, ROOT, assert_same_output

LAPACK = ("on", "off")
PROGRAMS = ROOT / "tests" / "agree"

PROGRAM = """
let a{k} = {a}
let tall{k} = {tall}
let b{k} = {b}
let spd{k} = a{k} @ transpose a{k} + Linalg.identity {n}
do print (Linalg.solve a{k} b{k})
do print (Linalg.solve a{k} tall{k})
do print (Linalg.inverse a{k})
do print (Linalg.det a{k})
do print (Linalg.logdet spd{k})
do print (Linalg.cholesky spd{k})
do print (fst (Linalg.eigh spd{k}))
do print (let (_, s, _) = Linalg.svd tall{k} in s)
do print (let (q, r) = Linalg.qr tall{k} in (q @ r, transpose q @ q, [for row in r -> minimum row]))
do print (let (u, s, v) = Linalg.svd tall{k} in (u @ Linalg.diag s @ transpose v, transpose u @ u, transpose v @ v))
do print (let (values, v) = Linalg.eigh spd{k} in (v @ Linalg.diag values @ transpose v, transpose v @ v))
do print (let (l, u, order) = Linalg.lu a{k} in l @ u - gather a{k} order)
do print (Linalg.lstsq tall{k} b{k})
do print (Linalg.lstsq (transpose tall{k}) {c})
do print (Linalg.expm (0.1 * (a{k} + transpose a{k})))
do print (Linalg.triangular_solve spd{k} b{k}, Linalg.triangular_solve_upper spd{k} b{k})
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


SIZES = [(1, 1), (5, 3), (7, 7), (12, 2)]


def given(n: int, m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(100 * n + m)
    return [rng.standard_normal(shape) for shape in ((n, n), (n, m), (n,), (m,))]


@pytest.mark.parametrize("lapack", LAPACK)
@ENGINES
def test_as_numpy(dpl, tmp_path, engine: tuple[str, ...], lapack: str) -> None:
    """All sizes in one program, most of which is the library."""
    file, text = tmp_path / "it.dp", ""
    for k, (n, m) in enumerate(SIZES):
        literals = [json.dumps(x.tolist()) for x in given(n, m)]
        text += PROGRAM.format(k=k, n=n, **dict(zip(("a", "tall", "b", "c"), literals, strict=True)))
    file.write_text(text, encoding="utf-8")
    run = dpl("run", "--no-cache", "--engine", *engine, file, DPL_LAPACK=lapack)
    assert run.returncode == 0, run.stderr
    wanted = [(size, want) for size in SIZES for want in expected(*given(*size))]
    for line, (size, want) in zip(run.stdout.splitlines(), wanted, strict=True):
        np.testing.assert_allclose(numbers(line), flat(want), rtol=1e-8, atol=1e-8, err_msg=str(size))


@ENGINES
def test_without_lapack(dpl, engine: tuple[str, ...]) -> None:
    program = PROGRAMS / "programs" / "linalg.dp"
    run = dpl("run", "--no-cache", "--engine", *engine, program, DPL_LAPACK="off")
    assert run.returncode == 0, run.stderr
    assert_same_output(run.stdout, program.with_suffix(".out").read_text(encoding="utf-8"))
