"""Searches, equations, integrals and curves in f32: the numbers of f64 to 1e-5, and derivatives with them."""

from __future__ import annotations

import pytest
from conftest import ENGINES

HEAD = """
let near what (a : f32[n]) (b : float[n]) =
  let worst = maximum [for i < n -> abs (float a[i] - b[i]) / (1.0 + abs b[i])] in
  if not (worst <= 1e-5) then print $"{what}: {a}, not {b}"
let close what (a : f32) (b : float) = near what [a] [b]
"""

PLACES = """
-- integrals
do close "sin" (Quad.integrate sin 0.0f32 3.0f32) (Quad.integrate sin 0.0 3.0)
do close "odd" (Quad.integrate (fun x -> x * exp (0.0 - 100.0 * x * x)) (-2.0f32) 2.0f32) 0.0
do close "bell" (Quad.integrate (fun x -> exp (0.0 - x * x)) (0.0f32 - 1.0f32 / 0.0f32) (1.0f32 / 0.0f32)) (sqrt pi)
do close "root" (Quad.integrate sqrt 0.0f32 1.0f32) (2.0 / 3.0)
let tail a = Quad.integrate (fun x -> exp (0.0 - a * x * x)) 0.0 a
do close "slope" (grad tail 1.3f32) (grad tail 1.3)
do close "erfcx" (-1e4f32 * grad Special.erfcx 100.0f32) 0.5641049762599319
-- roots
let (single, double) = ([1.0f32, 0.4f32], [1.0, 0.4])
let circle a x = [x[0] ** 2 + x[1] ** 2 - a, x[0] - 2.0 * x[1]]
let wave a x = [cos (0.3 * a * x[1]), 0.5 * sin (a * x[0])]
let bowl a (x : 's[2]) = (x[0] - a) ** 2 + x[0] ** 4 + (x[1] - x[0]) ** 2
do near "solve" (Root.solve circle single 1.3f32) (Root.solve circle double 1.3)
do near "fixpoint" (Root.fixpoint wave single 1.3f32) (Root.fixpoint wave double 1.3)
do near "argmin" (Root.argmin bowl single 1.3f32) (Root.argmin bowl double 1.3)
do near "slope of solve" (diff (Root.solve circle single) 1.3f32) (diff (Root.solve circle double) 1.3)
do near "slope of fixpoint" (diff (Root.fixpoint wave single) 1.3f32) (diff (Root.fixpoint wave double) 1.3)
let total search a = sum (search a)
let by_single = grad (total (Root.argmin bowl single)) 1.3f32
do close "gradient of argmin" by_single (grad (total (Root.argmin bowl double)) 1.3)
-- curves, matrices
let (xs, ys) = ([0.0f32, 1.0f32, 2.5f32], [1.0f32, 3.0f32, 0.0f32])
do close "cubic" (Interp.cubic xs ys 1.7f32) (Interp.cubic [0.0, 1.0, 2.5] [1.0, 3.0, 0.0] 1.7)
let turn a = (Linalg.expm [[0.0, a], [0.0 - a, 0.2]])[0]
do near "expm" (turn 1.3f32) (turn 1.3)
do near "slope of expm" (diff turn 1.3f32) (diff turn 1.3)
do near "identity" (Linalg.identity 2)[1] [0.0, 1.0]
do near "diagonal" (Linalg.diagonal (Linalg.diag [1.0f32, 2.5f32])) [1.0, 2.5]
do close "trace" (Linalg.trace (Linalg.diag [1.0f32, 2.5f32])) 3.5
"""

MATRICES = """
let a : float[3, 3] = [[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]
let b : f32[3, 3] = [for r in a -> [for x in r -> f32 x]]
let far a b = maximum (abs (flatten a - flatten b))
let w m = [for r in m -> [for x in r -> float x]]
let alike what x y = if far x y > 1e-5 then print $"{what}: {x}, not {y}"
let v = [1.0, 2.0, 3.0]
let v32 = [1.0f32, 2.0f32, 3.0f32]
let c x = [for e in x -> float e]
do alike "solve" [Linalg.solve a v] [c (Linalg.solve b v32)]
do alike "inverse" (Linalg.inverse a) (w (Linalg.inverse b))
do alike "cholesky" (Linalg.cholesky a) (w (Linalg.cholesky b))
do alike "q" (fst (Linalg.qr a)) (w (fst (Linalg.qr b)))
do alike "r" (snd (Linalg.qr a)) (w (snd (Linalg.qr b)))
do alike "eigh" [fst (Linalg.eigh a)] [c (fst (Linalg.eigh b))]
let again (u, s, v) = u * s @ transpose v
do alike "svd" (again (Linalg.svd a)) (w (again (Linalg.svd b)))
do alike "lstsq" [Linalg.lstsq a v] [c (Linalg.lstsq b v32)]
do alike "logdet" [[Linalg.logdet a]] [[float (Linalg.logdet b)]]
do alike "det" [[Linalg.det a]] [[float (Linalg.det b)]]
let grads f g = alike "gradient" (grad f a) (w (grad g b))
do grads (fun m -> sum (Linalg.solve m v)) (fun m -> sum (Linalg.solve m v32))
do grads (fun m -> sum (flatten (Linalg.cholesky m))) (fun m -> sum (flatten (Linalg.cholesky m)))
do grads (fun m -> sum (flatten (snd (Linalg.qr m)))) (fun m -> sum (flatten (snd (Linalg.qr m))))
do grads (fun m -> (fst (Linalg.eigh m))[0]) (fun m -> (fst (Linalg.eigh m))[0])
do grads (fun m -> let (_, s, _) = Linalg.svd m in s[0]) (fun m -> let (_, s, _) = Linalg.svd m in s[0])
do grads Linalg.logdet Linalg.logdet
do grads Linalg.det Linalg.det
"""

SEARCHES = """
-- descents
open Optim
let bowl (x : 's[2]) = (x[0] - 1.3) ** 2 + (x[0] - 1.3) ** 4 + (x[1] - x[0]) ** 2
let goal = { usual with tolerance = 1e-5 }
let (single, double) = ([0.5f32, 0.4f32], [0.5, 0.4])
let by_steps what one other =
  near what (minimize one bowl single 20) (minimize other bowl double 20)
do by_steps "sgd" (sgd 0.1) (sgd 0.1)
do by_steps "momentum" (momentum 0.05 0.5) (momentum 0.05 0.5)
do by_steps "adam" (adam 0.05) (adam 0.05)
do by_steps "adamw" (adamw 0.05 0.01) (adamw 0.05 0.01)
do by_steps "rmsprop" (rmsprop 0.05 0.9) (rmsprop 0.05 0.9)
let both what (a : f32[2] report) (b : float[2] report) =
  near what a.params b.params;
  if a.ending <> Converged then print $"{what}: {a}"
do both "lbfgs" (lbfgs goal bowl single) (lbfgs usual bowl double)
do both "cg" (cg goal bowl single) (cg usual bowl double)
do both "newton_cg" (newton_cg goal bowl single) (newton_cg usual bowl double)
do both "newton" (newton goal bowl single) (newton usual bowl double)
do both "descend" (descend (sgd 0.1) goal bowl single) (descend (sgd 0.1) usual bowl double)
let residuals (x : 's[2]) = [1.0 - x[0], 10.0 * (x[1] - x[0] ** 2)]
do both "levenberg_marquardt" (levenberg_marquardt goal residuals single) (levenberg_marquardt usual residuals double)
do both "gauss_newton" (gauss_newton goal residuals single) (gauss_newton usual residuals double)
"""

SOLUTIONS = """
-- differential equations: the states and the times are f32, with one tolerance for both
let swing (w : 's) (t : 't) (y : 's[2]) = [y[1], 0.0 - w * sin y[0]]
let (single, double) = ([0.5f32, 0.4f32], [0.5, 0.4])
let (one, two) = (swing 1.3f32, swing 1.3)
do near "euler" (Ode.euler one 20 0.0f32 1.0f32 single) (Ode.euler two 20 0.0 1.0 double)
do near "rk4" (Ode.rk4 one 20 0.0f32 1.0f32 single) (Ode.rk4 two 20 0.0 1.0 double)
do near "rk4_checkpoint" (Ode.rk4_checkpoint one 20 0.0f32 1.0f32 single) (Ode.rk4 two 20 0.0 1.0 double)
do near "dopri5" (Ode.dopri5 Ode.usual one 0.0f32 2.0f32 single) (Ode.dopri5 Ode.usual two 0.0 2.0 double)
do near "times of f64" (Ode.dopri5 Ode.usual one 0.0 2.0 single) (Ode.dopri5 Ode.usual two 0.0 2.0 double)
do near "tsit5" (Ode.tsit5 Ode.usual one 0.0f32 2.0f32 single) (Ode.tsit5 Ode.usual two 0.0 2.0 double)
let rough = { Ode.usual with relative = 1e-6; absolute = 1e-7 }
do near "rosenbrock23" (Ode.rosenbrock23 rough one 0.0f32 1.0f32 single) (Ode.rosenbrock23 rough two 0.0 1.0 double)
do near "kvaerno5" (Ode.kvaerno5 rough one 0.0f32 1.0f32 single) (Ode.kvaerno5 rough two 0.0 1.0 double)
do near "states" (Ode.states Ode.usual one 0.0f32 [0.5f32, 1.0f32] single)[1] (Ode.dopri5 Ode.usual two 0.0 1.0 double)
let (curve, exact) = (Ode.dense Ode.usual one 0.0f32 2.0f32 single, Ode.dense Ode.usual two 0.0 2.0 double)
do Array.iter (fun k -> near "dense" (curve (0.1f32 * of_int k)) (exact (0.1 * of_int k))) (range 20)
let low (y : 's[2]) = y[0] - 0.2
let (t, y) = Ode.until Ode.usual (fun _ y -> low y) one 0.0f32 9.0f32 single
let (t', y') = Ode.until Ode.usual (fun _ y -> low y) two 0.0 9.0 double
do near "until" ([t] ++ y) ([t'] ++ y')
let (g, h) = grad (fun (w, y) -> sum (Ode.adjoint Ode.usual swing 0.0f32 2.0f32 (w, y))) (1.3f32, single)
let (g', h') = grad (fun (w, y) -> sum (Ode.adjoint Ode.usual swing 0.0 2.0 (w, y))) (1.3, double)
do near "adjoint" ([g] ++ h) ([g'] ++ h')
let (a, b) = grad (fun (w, t) -> sum (Ode.dopri5 Ode.usual (swing w) 0.0f32 t single)) (1.3f32, 2.0f32)
let (a', b') = grad (fun (w, t) -> sum (Ode.dopri5 Ode.usual (swing w) 0.0 t double)) (1.3, 2.0)
do near "by steps" [a, b] [a', b']
"""

NAMES = ["places", "matrices", "searches", "solutions"]


@ENGINES
@pytest.mark.parametrize(
    "program", [PLACES, MATRICES, SEARCHES, pytest.param(SOLUTIONS, marks=pytest.mark.slow)], ids=NAMES
)
def test_single_precision_is_near_to_double(dpl, engine: tuple[str, ...], program: str) -> None:
    run = dpl("run", "--engine", *engine, "-", stdin=HEAD + program)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
