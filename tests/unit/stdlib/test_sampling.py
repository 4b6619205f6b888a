"""Modules Mcmc and Vi: moments of known distributions, within the error of the sample."""

from __future__ import annotations

import pytest

HEAD = """
let near what (a : float) b (tolerance : float) =
  if not (abs (a - b) <= tolerance) then print $"{what}: {a}, not {b}, within {tolerance}"
"""

NORMAL = """
let density (x : float[2]) = 0.0 - 0.5 * x[0] ** 2 - 0.5 * ((x[1] - x[0]) / 0.3) ** 2
let run = Mcmc.nuts { Mcmc.usual with chains = 2; warmup = 300; draws = 400 } (Random.key 2) density [5.0, -5.0]
let check what f mean sd =
  let l = Mcmc.line f run in
  near $"mean of {what}" l.mean mean (4.0 * sd / sqrt l.bulk);
  near $"sd of {what}" l.sd sd (0.3 * sd);
  near $"rhat of {what}" l.rhat 1.0 0.03
do check "x" (fun x -> x[0]) 0.0 1.0
do check "y" (fun x -> x[1]) 0.0 (sqrt 1.09)
do check "product" (fun x -> x[0] * x[1]) 1.0 1.44
do near "acceptance" run.acceptance 0.85 0.12
do near "divergences" (float run.divergences) 0.0 0.0
"""

WALKS = """
-- The same by walks of fixed length, with a density and draws of f32
let density (x : f32[2]) = 0.0 - 0.5 * x[0] ** 2 - 0.5 * ((x[1] - x[0]) / 0.3) ** 2
let run = Mcmc.hmc { Mcmc.usual with chains = 2; warmup = 300; draws = 400 } 8 (Random.key 2) density [5.0, -5.0]
let l = Mcmc.line (fun (x : f32[2]) -> x[1]) run
do near "mean" l.mean 0.0 (4.0 * sqrt (1.09 / l.bulk))
do near "sd" l.sd (sqrt 1.09) 0.3
do near "rhat" l.rhat 1.0 0.03
"""

BOUNDED = """
-- Nothing at or below zero, infinite slopes: draws stay where the density is.
let density (x : float[1]) = if x[0] > 0.0 then 2.0 * log x[0] - x[0] else 0.0 - inf
let run = Mcmc.nuts { Mcmc.usual with chains = 2; warmup = 200; draws = 400 } (Random.key 3) density [1.0]
let l = Mcmc.line (fun x -> x[0]) run
do near "mean of a gamma" l.mean 3.0 (4.0 * sqrt 3.0 / sqrt l.bulk)
do if l.low < 0.0 then print l.low
"""

NEAREST = """
let density (x : float[2]) = 0.0 - 0.5 * (x[0] - 3.0) ** 2 - 0.5 * ((x[1] - x[0]) / 0.5) ** 2
let s = { Vi.usual with steps = 800 }
let q = Vi.mean_field s (Random.key 1) density [0.0, 0.0]
do near "mean" q.mean[0] 3.0 0.1
do near "sd" (exp q.log_sd[0]) (1.0 / sqrt 5.0) 0.06
let f = Vi.full_rank s (Random.key 1) density [0.0, 0.0]
do near "factor" f.factor[1, 0] 1.0 0.15
do near "centre" f.centre[1] 3.0 0.15
let g = Vi.score_function { s with draws = 30 } (Random.key 1) density [2.0, 2.0]
do near "mean by scores" g.mean[0] 3.0 0.3
let xs = Vi.draws (Random.key 5) 4000 q
do near "draws" (mean [for x in xs -> x[0]]) q.mean[0] 0.05
"""

MOMENTS = """
let k = Random.key 3
let told what xs m v =
  near $"mean of {what}" (mean xs) m (4.0 * sqrt (v / 4000.0));
  near $"variance of {what}" (var xs) v (0.15 * v)
do told "exponential" (Random.exponential k 2.0 4000) 0.5 0.25
do told "gamma" (Random.gamma k 2.5 4000) 2.5 2.5
do told "small gamma" (Random.gamma k 0.5 4000) 0.5 0.5
do told "beta" (Random.beta k 2.0 3.0 4000) 0.4 0.04
do told "poisson" [for n in Random.poisson k 50.0 4000 -> float n] 50.0 50.0
do told "choice" (Random.choice k 4000 [1.0, 2.0, 6.0]) 3.0 (14.0 / 3.0)
let one (f : Random.key -> float) = [for k in Random.split_many k 4000 -> f k]
let correlations = [for k in Random.split_many k 4000 -> let l = Dist.lkj_sample k 3 2.0 in (l @ transpose l)[2, 1]]
do told "correlations" correlations 0.0 (1.0 / 6.0)
do told "gamma in f32" (one (fun k -> float (Dist.sample k (Dist.Gamma (2.5f32, 2.0f32))))) 1.25 0.625
do told "tiny beta in f32" (one (fun k -> float (Dist.sample k (Dist.Beta (0.001f32, 0.002f32))))) (1.0 / 3.0) 0.2216
do told "tiny shares" (one (fun k -> (Dist.dirichlet_sample k [0.001, 0.002])[0])) (1.0 / 3.0) 0.2216
do told "shapes" (Tree.flatten (Random.normal_like k ((fill 40 (zeros 50) : f32[40, 50]), zeros 2000))) 0.0 1.0
do told "uniform" (Tree.flatten (Random.uniform_like k { Nn.scale = zeros 2000; offset = zeros 2000 })) 0.5 (1.0 / 12.0)
do assert (sort (Random.shuffle k (range 50)) = range 50 && Random.shuffle k (range 50) <> range 50)
"""


@pytest.mark.parametrize(
    "program", [NORMAL, WALKS, BOUNDED, NEAREST, MOMENTS], ids=["normal", "walks", "bounded", "nearest", "moments"]
)
def test_samples(dpl, program: str) -> None:
    run = dpl("run", "--engine", "native", "-O1", "-", stdin=HEAD + program)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", [NORMAL, BOUNDED, NEAREST], ids=["normal", "bounded", "nearest"])
def test_samples_interpreted(dpl, program: str) -> None:
    run = dpl("run", "--engine", "interp", "-", stdin=HEAD + program, timeout=900)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr


def test_draws_on_one_side_of_a_quantile_all_count(dpl) -> None:
    """As ArviZ says; NaN stays NaN."""
    draws = ("float (min 1 (i % 7))", "1.0", "float (i / 50)", "if i = 3 then nan else 1.0")
    calls = ", ".join(f"Mcmc.ess_tail [[for i < 100 -> {x}]]" for x in draws)
    run = dpl("run", "--engine", "interp", "-", stdin=f"do print [{calls}]\n")
    assert run.stdout == "[100.0, 100.0, 1.0869565217391304, nan]\n"


@pytest.mark.parametrize("call", ["Mcmc.rhat [[1.0, 2.0]]", "Mcmc.ess [[1.0, 2.0]]", "Mcmc.ess_tail [[1.0, 2.0]]"])
def test_too_few_draws(dpl, call: str) -> None:
    run = dpl("run", "-", stdin=f"do print ({call})\n")
    assert run.returncode == 1
    assert "2 draws of a chain are too few" in run.stderr
