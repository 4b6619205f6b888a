"""Module Optim: known minima, SciPy's answers, and why a search ends; module Tree."""

from __future__ import annotations

import pytest
from conftest import ENGINES

HEAD = """
open Optim
let near what (tolerance : float) a b =
  if not (Tree.norm (Tree.sub a b) <= tolerance) then print $"{what}: {a}, not {b}"
let ends what (report : 'p report) (ending : ending) = if report.ending <> ending then print $"{what}: {report}"
let finds what tolerance (report : 'p report) (place : 'p) =
  near what tolerance report.params place; ends what report Converged
"""

# From a start that is not near, a whole first step leads into a far basin, of negative rates.
FOXES = """
let solve p = Ode.states { Ode.usual with relative = 1e-6; strict = false }
  (fun _ (y : float[2]) -> [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])
  0.0 [for i < 20 -> 0.75 * float (i + 1)] [5.0, 3.0]
let seen = solve [1.0, 0.4, 0.1, 0.6]
do finds "levenberg_marquardt: foxes" 1e-4 (levenberg_marquardt { usual with tolerance = 1e-5 }
  (fun p -> flatten (solve p - seen)) [0.8, 0.3, 0.15, 0.5]) [1.0, 0.4, 0.1, 0.6]
"""

MINIMA = """
let valley (x : float[2]) = (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2
let beale (x : float[2]) =
  let term a k = (a - x[0] * (1.0 - x[1] ** k)) ** 2 in
  term 1.5 1 + term 2.25 2 + term 2.625 3
let xs = [for i < 12 -> -2.0 + 4.0 * float i / 11.0]
let ys = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
type line = { at : float; slope : float; fixed : int }
let logistic p =
  let z = p.at + p.slope * xs in
  sum (softplus z - ys * z) + 0.05 * (p.at ** (p.fixed - 1) + p.slope ** 2)
let fitted = { at = 0.32698802056936154; slope = -0.11630780245786098; fixed = 3 }
let all what search search_records =
  finds $"{what}: valley" 1e-6 (search valley [-1.2, 1.0]) [1.0, 1.0];
  finds $"{what}: beale" 1e-6 (search beale [1.0, 0.8]) [3.0, 0.5];
  finds $"{what}: at the place" 0.0 (search (fun x -> dot x x) [0.0, 0.0]) [0.0, 0.0];
  finds $"{what}: logistic" 1e-7 (search_records logistic { at = 0.0; slope = 0.0; fixed = 3 }) fitted;
do all "lbfgs" (lbfgs usual) (lbfgs usual)
do all "cg" (cg usual) (cg usual)
do all "newton_cg" (newton_cg usual) (newton_cg usual)
do finds "newton: valley" 1e-6 (newton usual valley [-1.2, 1.0]) [1.0, 1.0]
do finds "newton: beale" 1e-6 (newton usual beale [1.0, 0.8]) [3.0, 0.5]
"""

LEAST_SQUARES = """
let t = [for i < 8 -> 0.5 * float i]
let z = 2.5 * exp (-0.7 * t) + 0.3 + 0.05 * cos (9.0 * t)
let residuals (p : float[3]) = p[0] * exp ((0.0 - p[1]) * t) + p[2] - z
let fitted = [2.479831729, 0.755240638, 0.362337264]
do finds "levenberg_marquardt" 1e-6 (levenberg_marquardt usual residuals [1.0, 1.0, 0.0]) fitted
do finds "gauss_newton" 1e-6 (gauss_newton usual residuals [1.0, 1.0, 0.0]) fitted
let valley (x : float[2]) = [1.0 - x[0], 10.0 * (x[1] - x[0] ** 2)]
do finds "valley" 1e-8 (levenberg_marquardt usual valley [-1.2, 1.0]) [1.0, 1.0]
"""

ENDINGS = """
let bowl (x : float) = x * x
do ends "few steps" (lbfgs { usual with most = 2 } (fun x -> log (1.0 + x ** 4) + x) 30.0) Out_of_steps
do ends "nan at the start" (lbfgs usual (fun x -> log x) (-1.0)) Not_finite
do ends "nan on the way" (descend (sgd 1.0) usual (fun x -> sqrt x) 0.3) Not_finite
do ends "no floor" (cg { usual with most = 3 } (fun x -> x) 0.0) Out_of_steps
do ends "a wall" (lbfgs usual (fun x -> if x < 1.0 then nan else 1.0 + x) 1.0) No_descent
do ends "sgd" (descend (sgd 0.1) usual bowl 3.0) Converged
let told = ref 0
let asked step value _ = told := !told + step; value > 1.0
do ends "stopped" (descend_while asked (sgd 0.1) usual bowl 3.0) Stopped
do assert (!told = 1 + 2 + 3 + 4 + 5)
do near "early" 1e-12 (early 2 (fun x -> (x - 0.9) ** 2) (sgd 0.25) usual bowl 3.0) (0.75, 0.0225)
do ends "a rate of its own" (descend (hyper_sgd 0.01 0.01) { usual with most = 100 } bowl 3.0) Converged
do near "armijo" 1e-12 (armijo bowl 3.0 (-6.0) 9.0 6.0 1.0) (Some (0.5, 0.0))
do assert (armijo (fun _ -> 10.0) 3.0 (-6.0) 9.0 6.0 1.0 = None)
do ends "adam" (descend (adam 0.1) { usual with tolerance = 1e-3 } bowl 3.0) Converged
do ends "clipped" (descend (clipped 0.5 (sgd 0.1)) usual (fun x -> x ** 4 + x * x) 30.0) Converged
"""

# Losses whose scale along a direction is far from 1, and a minimum where the loss is flat to the last digit.
CONJUGATE = """
let xs = Array.linspace 0.0 4.0 50
let ys = 2.5 * exp (-1.3 * xs) + 0.5 + 0.02 * Random.normal (Random.key 7) 50
let fit [a, b, c] = sum ((a * exp (-b * xs) + c - ys) ** 2)
let powell [a, b, c, d] = (a + 10.0 * b) ** 2 + 5.0 * (c - d) ** 2 + (b - 2.0 * c) ** 4 + 10.0 * (a - d) ** 4
let few = { usual with most = 200 }
do ends "fit" (cg few fit [1.0, 1.0, 1.0]) Converged
do near "a fit" 1e-6 (cg few fit [1.0, 1.0, 1.0]).params (lbfgs few fit [1.0, 1.0, 1.0]).params
do ends "Powell" (cg few powell [3.0, -1.0, 0.0, 1.0]) Converged
do ends "of one number" (cg few (fun w -> sum (softplus (w * xs - 1.0)) - 3.0 * w) 0.0) Converged
do ends "from far" (cg few (fun [x] -> (x - 3.0) ** 2) [1e10]) Converged
let large [x, y] = 1e20 * ((1.0 - x) ** 2 + 100.0 * (y - x * x) ** 2)
do ends "of large losses" (cg few large [-1.2, 1.0]) Converged
let steep = cg few exp 700.0
do ends "steep" steep Not_finite
do near "steep" 0.0 (float steep.steps) 0.0
"""

SMALL = """
do near "cosine" 1e-15 [for i < 5 -> cosine 2.0 4 i] [2.0, 1.0 + sqrt 0.5, 1.0, 1.0 - sqrt 0.5, 0.0]
do near "step_decay" 1e-15 [for i < 5 -> step_decay 2.0 0.5 2 i] [2.0, 2.0, 1.0, 1.0, 0.5]
do near "exponential" 1e-15 [for i < 3 -> exponential 2.0 0.5 i] [2.0, 1.0, 0.5]
do near "warmup" 1e-15 [for i < 5 -> warmup 2 (exponential 2.0 0.5) i] [1.0, 2.0, 2.0, 1.0, 0.5]
do near "scheduled" 1e-12 (minimize (scheduled sgd (step_decay 0.25 0.5 1)) (fun x -> x * x) 1.0 2) 0.375
do near "clip_norm" 1e-15 (Tree.clip_norm 1.0 (3.0, [4.0])) (0.6, [0.8])
do near "clip_norm of little" 0.0 (Tree.clip_norm 10.0 (3.0, [4.0])) (3.0, [4.0])
do near "unflatten" 0.0 (Tree.unflatten (0.0, [1.0, 2.0]) [5.0, 6.0, 7.0]) (5.0, [6.0, 7.0])
let product v = let (a, b) = Tree.unflatten (0.0, [1.0, 2.0]) v in a * b[1]
do near "its slope" 0.0 (grad product [5.0, 6.0, 7.0]) [7.0, 0.0, 5.0]
do near "add, sub, scale" 0.0 (Tree.scale 2.0 (Tree.sub (Tree.add (1.0, 2.0) (3.0, 4.0)) (1.0, 1.0))) (6.0, 10.0)
"""


@ENGINES
@pytest.mark.parametrize(
    "program",
    [MINIMA, LEAST_SQUARES, ENDINGS, CONJUGATE, SMALL],
    ids=["minima", "squares", "endings", "conjugate", "small"],
)
def test_searches(dpl, engine: tuple[str, ...], program: str) -> None:
    run = dpl("run", "--engine", *engine, "-", stdin=HEAD + program)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


def test_unflatten_wants_as_many_numbers(dpl) -> None:
    run = dpl("run", "-", stdin="do print (Tree.unflatten (1.0, 2.0) [1.0])\n")
    assert run.returncode == 1
    assert "Tree.unflatten: 1 numbers for 2 places" in run.stderr


def test_rates_of_an_equation(dpl) -> None:
    """The interpreter would take half a minute."""
    run = dpl("run", "-", stdin=HEAD + FOXES)
    assert (run.stdout, run.stderr) == ("", "")


@pytest.mark.parametrize("engine", ["interp", "native"])
def test_training_on_parts_of_examples(dpl, engine: str) -> None:
    """A line is fitted; every pass sees each example once, the last part is smaller, and nothing is said of it all."""
    program = """
let points = [for i < 23 -> (0.1 * float i, 0.3 * float i + 1.0)]
let loss part (w, b) = mean [for (x, y) in part -> (w * x + b - y) ** 2]
let (w, b) = Optim.train (Optim.adam 0.05) (Random.key 1) 10 300 loss points (0.0, 0.0)
do assert (abs (w - 3.0) < 0.05 && abs (b - 1.0) < 0.05)
let seen = ref 0
let count part (p : float) =
  seen := !seen + length part;
  p * 0.0
do ignore (Optim.train (Optim.sgd 0.1) (Random.key 1) 10 3 count points 0.0)
do print (!seen, Progress.over 4 (fun i total -> total + i) 0)
"""
    run = dpl("run", "--engine", engine, "-", stdin=program)
    assert (run.stdout, run.stderr) == ("(69, 6)\n", "")
