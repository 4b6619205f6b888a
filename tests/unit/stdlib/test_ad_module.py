"""Module Ad: every function against finite differences or against others, at random functions and points, in f64 and
f32 and both engines."""

import random

import pytest
from conftest import ENGINES

PROPERTIES = """
let gap (a : 's[n]) (b : 's[n]) : 's = maximum [for (x, y) in zip a b -> abs (x - y) / (1.0 + abs x + abs y)]
let gaps (a : 's[n, m]) (b : 's[n, m]) : 's = gap (flatten a) (flatten b)
let step (h : 's) (x : 's[3]) (i : int) : 's[3] = { x with [i] = x[i] + h }
let slopes (h : 's) (f : 's[3] -> 's[m]) (x : 's[3]) : 's[3, m] =
  [for i < 3 -> (f (step h x i) - f (step (0.0 - h) x i)) / (2.0 * h)]

-- Functions with random coefficients: of a number, from vectors to numbers and to vectors.
let curve (p : 's[4]) (x : 's) : 's = p[0] * sin (p[1] * x) + exp (p[2] * x) / (2.0 + p[3] * x * x)
let hill (p : 's[4]) (x : 's[3]) : 's =
  let s = loop s = p[0] for i < length x do s * p[1] + sin (x[i] * p[2]) * x[(i + 1) % 3] in
  if s > 0.0 then s * s * p[3] + norm (x + 3.0) else s + x[0] ** 3 * x[2]
let field (p : 's[4]) (x : 's[3]) : 's[3] = [x[1] * p[0] * x[2], sin (x[0] * p[1]), x[2] ** 2 * p[2] + x[0] * p[3]]
let wide (p : 's[4]) (x : 's[3]) : 's[4] = [x[0] * x[1], exp (p[0] * x[2]), p[1] * x[1], p[2] * x[0] + x[2] * p[3]]

let properties (h : 's) (p : 's[4]) (x : 's[3]) (v : 's[3]) (u : 's[4]) =
  let (c, t) = (curve p, x[0]) in
  let slope f = (f (t + h) - f (t - h)) / (2.0 * h) in
  let (f, g, w) = (hill p, field p, wide p) in
  let y = f x in
  let gradient = Ad.grad f x in
  let hessian = Ad.hessian f x in
  let jacobian = Ad.jacobian w x in
  let square = Ad.jacobian g x in
  let curl = [square[2, 1] - square[1, 2], square[0, 2] - square[2, 0], square[1, 0] - square[0, 1]] in
  let div = square[0, 0] + square[1, 1] + square[2, 2] in
  let pair (a, b) = [a, b] in
  let places = [for k < 9 -> (k / 3, k % 3)] in
  [ ("diff", gap [Ad.diff c t] [slope c]);
    ("diff'", gap (pair (Ad.diff' c t)) [c t, Ad.diff c t]);
    ("diff2", gap [Ad.diff2 c t] [slope (Ad.diff c)]);
    ("diff2'", gap (pair (Ad.diff2' c t)) [c t, diff (fun t -> diff c t) t]);
    ("diffn 0", gap [Ad.diffn 0 c t] [c t]);
    ("diffn 1", gap [Ad.diffn 1 c t] [Ad.diff c t]);
    ("diffn 3", gap [Ad.diffn 3 c t] [slope (Ad.diff2 c)]);
    ("diffn'", gap (pair (Ad.diffn' 2 c t)) [c t, Ad.diff2 c t]);
    ("jet", gap (Ad.jet 3 c t) [for k < 4 -> Ad.diffn k c t]);
    ("jet of a jet", gap [Ad.diffn 2 (Ad.diffn 1 c) t] [Ad.diffn 3 c t]);
    ("jet along a line", gap [Ad.diffn 2 (fun s -> f (x + s * v)) 0.0] [dot v (hessian @ v)]);
    ("grad", gap gradient (flatten (slopes h (fun x -> [f x]) x)));
    ("grad'", gap (snd (Ad.grad' f x)) gradient + gap [fst (Ad.grad' f x)] [y]);
    ("gradv", gap [Ad.gradv f x v] [dot gradient v]);
    ("gradv'", gap (pair (Ad.gradv' f x v)) [y, dot gradient v]);
    ("hessian", gaps hessian (slopes h (Ad.grad f) x));
    ("hessian by jacobian", gaps hessian (Ad.jacobian (Ad.grad f) x));
    ("hessian, forward", gaps hessian (Ad.jacobianT (fun x -> Ad.jacobianT (fun x -> [f x]) x |> flatten) x));
    ("hessian'", gaps (snd (Ad.hessian' f x)) hessian + gap [fst (Ad.hessian' f x)] [y]);
    ("hessianv", gap (Ad.hessianv f x v) (hessian @ v));
    ("hessianv'", gap (snd (Ad.hessianv' f x v)) (hessian @ v) + gap [fst (Ad.hessianv' f x v)] [y]);
    ("hvp", gap (Ad.hvp f x v) (hessian @ v) + gap (snd (Ad.hvp' f x v)) (hessian @ v));
    ("gradhessian", let (a, b) = Ad.gradhessian f x in gap a gradient + gaps b hessian);
    ("gradhessian'", let (a, b, c) = Ad.gradhessian' f x in gap [a] [y] + gap b gradient + gaps c hessian);
    ("gradhessianv", let (a, b) = Ad.gradhessianv f x v in gap [a] [dot gradient v] + gap b (hessian @ v));
    ("gradhessianv'", let (a, b, c) = Ad.gradhessianv' f x v in gap [a, b] [y, dot gradient v] + gap c (hessian @ v));
    ("laplacian", gap [Ad.laplacian f x] [hessian[0, 0] + hessian[1, 1] + hessian[2, 2]]);
    ("laplacian'", gap (pair (Ad.laplacian' f x)) [y, Ad.laplacian f x]);
    ("jacobian", gaps (transpose jacobian) (slopes h w x));
    ("jacobian'", let (a, b) = Ad.jacobian' w x in gap a (w x) + gaps b jacobian);
    ("jacobianT", gaps (Ad.jacobianT w x) (transpose jacobian));
    ("jacobianT'", let (a, b) = Ad.jacobianT' w x in gap a (w x) + gaps b (transpose jacobian));
    ("jacobianv", gap (Ad.jacobianv w x v) (jacobian @ v));
    ("jacobianv'", let (a, b) = Ad.jacobianv' w x v in gap a (w x) + gap b (jacobian @ v));
    ("jacobianTv", gap (Ad.jacobianTv w x u) (u @ jacobian));
    ("jacobianTv'", let (a, b) = Ad.jacobianTv' w x u in gap a (w x) + gap b (u @ jacobian));
    ("curl", gap (Ad.curl g x) curl);
    ("curl'", let (a, b) = Ad.curl' g x in gap a (g x) + gap b curl);
    ("div", gap [Ad.div g x] [div]);
    ("div'", let (a, b) = Ad.div' g x in gap a (g x) + gap [b] [div]);
    ("curldiv", let (a, b) = Ad.curldiv g x in gap a curl + gap [b] [div]);
    ("curldiv'", let (a, b, c) = Ad.curldiv' g x in gap a (g x) + gap b curl + gap [c] [div]);
    ("jacobian_sparse", gap (Ad.jacobian_sparse places g x) (flatten square));
    ("jacobian_sparse'", let (a, b) = Ad.jacobian_sparse' places g x in gap a (g x) + gap b (flatten square));
    ("hessian_sparse", gap (Ad.hessian_sparse places f x) (flatten hessian));
    ("hessian_sparse'", let (a, b) = Ad.hessian_sparse' places f x in gap [a] [y] + gap b (flatten hessian)) ]
"""
SHOW = 'do List.iter (fun (name, gap) -> print $"{name}: {gap}") (properties %s)\n'
DIFFERENCES = {"diff", "diff2", "diffn 3", "grad", "hessian", "jacobian"}
SIZES = {"p": 4, "x": 3, "v": 3, "u": 4}


def program(seed: int, suffix: str, step: float) -> str:
    numbers = random.Random(seed)

    def vector(size: int) -> str:
        return "[" + ", ".join(f"{numbers.uniform(-1.5, 1.5):.3f}{suffix}" for _ in range(size)) + "]"

    return SHOW % " ".join([f"{step}{suffix}", *map(vector, SIZES.values())])


@ENGINES
@pytest.mark.parametrize("suffix, step, near, exact", [("", 1e-5, 1e-7, 1e-12), ("f32", 1e-2, 3e-2, 2e-4)])
def test_vocabulary(dpl, engine: tuple[str, ...], suffix: str, step: float, near: float, exact: float) -> None:
    text = PROPERTIES + "".join(program(seed, suffix, step) for seed in range(6))
    run = dpl("run", "--engine", *engine, "-", stdin=text)
    assert run.returncode == 0, run.stderr
    found = [(name, float(gap)) for name, gap in (line.rsplit(": ", 1) for line in run.stdout.splitlines())]
    assert len(found) == 6 * 46
    wrong = [(name, gap) for name, gap in found if not gap <= (near if name in DIFFERENCES else exact)]
    assert not wrong
