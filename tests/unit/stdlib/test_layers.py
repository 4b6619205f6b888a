"""Layers of module Nn against NumPy, written down independently; gradients against finite differences."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest
from conftest import ENGINES

rng = np.random.default_rng(5)
X = rng.normal(size=(4, 3)).round(3)
LSTM = {
    "input": rng.normal(size=(3, 8)).round(3),
    "state": rng.normal(size=(2, 8)).round(3),
    "bias": rng.normal(size=8).round(3),
}
GRU = {
    "input": rng.normal(size=(3, 6)).round(3),
    "state": rng.normal(size=(2, 6)).round(3),
    "bias": rng.normal(size=6).round(3),
}
INNER = rng.normal(size=2).round(3)
HEADS = {name: rng.normal(size=(4, 4)).round(3) for name in ("query", "key", "value", "output")}
Y = rng.normal(size=(5, 4)).round(3)
LOGITS = rng.normal(size=(5, 3)).round(3)


def dp(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + "; ".join(f"{name} = {dp(part)}" for name, part in value.items()) + " }"
    return re.sub(r"(?<![\w.])-[\d.e-]+", r"(\g<0>)", json.dumps(np.asarray(value).tolist()))


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def lstm() -> np.ndarray:
    h, c = np.zeros(2), np.zeros(2)
    for x in X:
        i, f, g, o = np.split(x @ LSTM["input"] + h @ LSTM["state"] + LSTM["bias"], 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return h


def gru() -> np.ndarray:
    h = np.zeros(2)
    for x in X:
        xr, xz, xn = np.split(x @ GRU["input"] + GRU["bias"], 3)
        hr, hz, hn = np.split(h @ GRU["state"], 3)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * (hn + INNER))
        h = (1 - z) * n + z * h
    return h


def attention(causal: bool) -> np.ndarray:
    heads = []
    for part in (slice(0, 2), slice(2, 4)):
        q, k, v = ((Y @ HEADS[name])[:, part] for name in ("query", "key", "value"))
        scores = q @ k.T / np.sqrt(2)
        heads.append(softmax(np.where(np.tril(np.ones((5, 5))) > 0, scores, -np.inf) if causal else scores) @ v)
    return np.concatenate(heads, axis=1) @ HEADS["output"]


def ctc(labels: tuple[int, ...]) -> float:
    """By all paths."""
    p = softmax(LOGITS)
    total = 0.0
    for path in itertools.product(range(3), repeat=5):
        if tuple(k for k, _ in itertools.groupby(path) if k) == labels:
            total += np.prod([p[t, k] for t, k in enumerate(path)])
    return -np.log(total)


def layer_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / np.sqrt(x.var() + 1e-5)


CASES = {
    "fold (lstm_step c) (zeros 2, zeros 2) xs |> fst": lstm(),
    "fold (gru_step g) (zeros 2) xs": gru(),
    "self_attention a 2 (fun _ _ -> true) ys": attention(False),
    "self_attention a 2 (fun i j -> j <= i) ys": attention(True),
    "ctc (log_softmax' logits) [1, 2]": ctc((1, 2)),
    "ctc (log_softmax' logits) [1, 1]": ctc((1, 1)),
    "ctc (log_softmax' logits) ([] : int[0])": ctc(()),
    "cross_entropy logits [0, 2, 1, 1, 0]": -np.log(softmax(LOGITS)[range(5), [0, 2, 1, 1, 0]]).mean(),
    "bce xs[0] [1.0, 0.0, 1.0]": -np.mean(np.log([sigmoid(X[0, 0]), 1 - sigmoid(X[0, 1]), sigmoid(X[0, 2])])),
    "layer_norm (norm 3) xs[1]": layer_norm(X[1]),
    "rms_norm (ones 3) xs[1]": X[1] / np.sqrt(np.mean(X[1] ** 2) + 1e-6),
    "fst (batch_norm (norm 3) xs)": (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5),
    "mse xs[0] xs[1]": np.mean((X[0] - X[1]) ** 2),
    "mae xs[0] xs[1]": np.mean(np.abs(X[0] - X[1])),
    "huber 0.5 [0.0, 0.3] [2.0, 0.0]": (0.5 * 0.3**2 + 0.5 * (2 - 0.25)) / 2,
    "kl [0.2, 0.8] [0.5, 0.5]": 0.2 * np.log(0.4) + 0.8 * np.log(1.6),
    "silu xs[2]": X[2] * sigmoid(X[2]),
    "mish xs[2]": X[2] * np.tanh(np.log1p(np.exp(X[2]))),
    "softsign xs[2]": X[2] / (1 + np.abs(X[2])),
    "map (leaky_relu 0.1) xs[2]": np.where(X[2] > 0, X[2], 0.1 * X[2]),
    "map elu xs[2]": np.where(X[2] > 0, X[2], np.expm1(X[2])),
    "gelu [1.0, -2.0]": [0.8413447460685429, -0.04550026389635842],
    "positions 2 4": [[0.0, 1.0, 0.0, 1.0], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)]],
    "one_hot 3 1": [0.0, 1.0, 0.0],
    "(let q = orthogonal (Random.key 1) 3 in q @ transpose q)": np.eye(3),
}

DATA = f"""
open Nn
let xs = {dp(X)}
let ys = {dp(Y)}
let logits = {dp(LOGITS)}
let c = {dp(LSTM)}
let g = {{ gates = {dp(GRU)}; inner = {dp(INNER)} }}
let a = {dp(HEADS)}
let log_softmax' rows = [for row in rows -> log_softmax row]
"""

SLOPES = """
let check what f x = if not (Ad.check_grad f x < 1e-6) then print $"{what}: {Ad.check_grad f x}"
do check "lstm" (fun c -> let (h, m) = fold (lstm_step c) (zeros 2, zeros 2) xs in sum (h * h + m)) c
do check "gru" (fun g -> sum (fold (gru_step g) (zeros 2) xs ** 2)) g
do check "attention" (fun (a, ys) -> sum (sum (self_attention a 2 (fun i j -> j <= i) ys ** 2))) (a, ys)
do check "ctc" (fun logits -> ctc (log_softmax' logits) [1, 2]) logits
do check "norms" (fun (p, x) -> sum (layer_norm p x ** 2) + sum (rms_norm p.scale x ** 3)) (norm 3, xs[0])
do check "batch" (fun (p, x) -> sum (sum (fst (batch_norm p x) ** 3))) (norm 3, xs)
do check "dropout" (fun x -> sum (sum (dropout (Random.key 1) 0.25 x ** 3))) xs
do check "loss" (fun logits -> cross_entropy logits [0, 2, 1, 1, 0] + bce logits[0] logits[1]) logits
"""

SAMPLES = """
let spread (w : float[n, m]) = let all = flatten w in (abs (mean all), std all)
let near what (a, b) sd = if not (a < 0.1 * sd && abs (b - sd) < 0.05 * sd) then print (what, a, b, sd)
do near "glorot" (spread (glorot (Random.key 1) 60 100)) (sqrt (2.0 / 160.0))
do near "he" (spread (he (Random.key 1) 60 100)) (sqrt (2.0 / 60.0))
do near "lecun" (spread (lecun (Random.key 1) 60 100)) (sqrt (1.0 / 60.0))
let dropped = dropout (Random.key 1) 0.25 (ones 4000)
do if abs (mean dropped - 1.0) > 0.05 then print "mean after dropout"
do if any [for x in dropped -> x <> 0.0 && abs (x - 4.0 / 3.0) > 1e-12] then print "dropout"
let flat = flatten (dropout (Random.key 1) 0.25 [for _ < 5 -> ones 8])
do if flat <> dropout (Random.key 1) 0.25 (ones 40) then print "rows have a chance of their own"
do if dropout (Random.key 1) 0.5 (ones 4 : f32[4]) <> [0.0f32, 2.0f32, 0.0f32, 0.0f32] then print "dropout of f32"
do if grad (fun x -> sum (dropout (Random.key 1) 1.0 x)) [1.0, inf] <> [0.0, 0.0] then print "nothing is kept"
let half : (2, 2, f32) linear = linear (Random.key 1) 2 2
do if any [for x in (dense half [[1.0f32, 2.0f32]])[0] -> x <> x] then print "f32"
"""


@ENGINES
def test_layers(dpl, engine: tuple[str, ...]) -> None:
    program = DATA + "".join(f"do print ({call})\n" for call in CASES)
    run = dpl("run", "--engine", *engine, "-", stdin=program)
    assert run.returncode == 0, run.stderr
    for (call, want), line in zip(CASES.items(), run.stdout.splitlines(), strict=True):
        np.testing.assert_allclose(json.loads(line), want, rtol=1e-10, atol=1e-12, err_msg=call)


@ENGINES
@pytest.mark.parametrize("program", [SLOPES, SAMPLES], ids=["slopes", "samples"])
def test_facts(dpl, engine: tuple[str, ...], program: str) -> None:
    run = dpl("run", "--engine", *engine, "-", stdin=DATA + program)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


def test_heads_must_divide_the_numbers(dpl) -> None:
    run = dpl("run", "-", stdin=DATA + "do print (self_attention a 3 (fun _ _ -> true) ys)\n")
    assert run.returncode == 1
    assert "4 numbers cannot be in 3 heads" in run.stderr
