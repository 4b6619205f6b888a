"""Modules of numbers against SciPy and NumPy (`references/make.py`), in both engines; every example in a doc comment;
derivatives against finite differences, forward against reverse."""

from __future__ import annotations

import json
import re
from math import inf, isclose, isnan
from pathlib import Path

import pytest
from conftest import ENGINES, NUMBER, ROOT, assert_same_output

REFERENCES = Path(__file__).parent / "references"
EXAMPLE = re.compile(r"^-- Example: `(.*)` is (.*)\.$", re.MULTILINE)
PUBLIC = re.compile(r"^let (?:rec )?(?!rec\b)([a-z]\w*'*)", re.MULTILINE)
MATHEMATICS = ("dist", "fft", "interp", "ode", "quad", "root", "sparse", "special", "stats", "transform")
COMPILED = (*MATHEMATICS, "array", "list", "map", "option", "result", "set", "string")
FILES = ("bytes", "data", "json", "safetensors", "tree")  # the examples of these leave out what reads and writes files
INCOMPLETE = (*FILES, "mpi", "plot", "prelude", "sys")

FACTS = """
let check (what : string) (f : float -> float) (x : float) : unit =
  let (forward, reverse) = (diff f x, grad f x) in
  let h = 1e-5 * max 1.0 (abs x) in
  let rough = (8.0 * (f (x + h) - f (x - h)) - (f (x + 2.0 * h) - f (x - 2.0 * h))) / (12.0 * h) in
  let near a b tolerance = abs (a - b) <= tolerance * (1.0 + abs b) in
  if not (near forward reverse 1e-11 && near forward rough 1e-7) then
    print $"{what} at {x}: {forward}, {reverse}, {rough}"
let tight = { Ode.usual with relative = 1e-12; absolute = 1e-12 }
let rough = { Ode.usual with relative = 1e-6 }
let fall _ (_, v) = (v, 0.0 - 9.81 - 0.1 * v * abs v)
let twice what f x = check what f x; check $"the slope of {what}" (diff f) x
let at_both (test : string -> (float -> float) -> float -> unit) what f = List.iter (test what f) [1.3; 2.2]
"""
SLOPES = [
    *[f"Special.{name}" for name in ("gamma", "digamma", "factorial", "bessel_j 0", "bessel_j 3", "bessel_i 2")],
    *[f"Special.{name}" for name in ("erfc", "erfcx", "bessel_k 1", "polygamma 1", "bessel_y 0", "bessel_y 3")],
    *[f"fun x -> Special.{name}" for name in ("lbeta x 2.5", "beta 2.5 x", "gammainc x 2.0", "gammainc 2.0 x")],
    *[f"fun x -> Special.{name}" for name in ("gammaincc x 5.0", "gammaincc 30.0 (30.0 * x)", "binomial x 1.5")],
    *[f"fun x -> Special.{name}" for name in ("betainc x 3.0 0.4", "betainc 2.0 x 0.4", "betainc 2.0 3.0 (x / 4.0)")],
    *[f"fun x -> Special.{name}" for name in ("erfcinv (x / 4.0)", "erfinv (x / 4.0)")],
    "Interp.cubic [0.0, 1.0, 2.5, 4.0] [1.0, 3.0, 0.0, 2.0]",
    "fun y -> Interp.cubic [0.0, 1.0, 2.5, 4.0] [1.0, y, 0.0, 2.0] 1.7",
    "fun y -> Interp.monotone [0.0, 1.0, 2.5, 4.0] [1.0, y + 5.0, 9.0, 20.0] 1.7",
    "fun y -> let (a, b) = Fft.fft ([1.0, y, y * y], [0.5, 0.0, y]) in a[1] * b[2]",
    "fun y -> sum (Fft.convolve [1.0, y] [y, y * y, 2.0] ** 2)",
    "fun a -> Quad.integrate (fun x -> exp (0.0 - a * x * x)) 0.0 a",
    "fun a -> Quad.integrate (fun x -> exp (0.0 - a * x)) 1.0 inf",
    "Root.chandrupatla (fun a x -> a * exp x - 3.0) (-5.0) 5.0",
    "Root.brent (fun a x -> a * exp x - 3.0) (-5.0) 5.0",
    "Root.bisect (fun a x -> a * exp x - 3.0) (-5.0) 5.0",
    "Root.newton (fun a x -> x ** 3 - a) 1.0",
    "fun a -> sum (Root.solve (fun a x -> [x[0] ** 2 + x[1] ** 2 - a, x[0] - 2.0 * x[1]]) [1.0, 0.4] a)",
    "fun a -> sum (Root.fixpoint (fun a x -> [cos (0.3 * a * x[1]), 0.5 * sin (a * x[0])]) [1.0, 0.4] a)",
    "fun a -> sum (Root.fixpoint (fun a x -> [0.99 * x[0] + 0.01 * a, sin (0.1 * a * x[0])]) [1.0, 1.0] a)",
    "fun a -> sum (Root.argmin (fun a x -> (x[0] - a) ** 2 + x[0] ** 4 + (x[1] - x[0]) ** 2) [0.5, 0.5] a)",
    "fun x -> let (y, j) = Transform.shares [x, 1.0 - x] in y[0] * y[1] + j",
    "fun x -> let (y, j) = Transform.correlation 3 [x, 0.3, x * x] in y[2, 1] * y[1, 0] + j",
    "fun x -> let (y, j) = Transform.ordered [x, 0.3, 0.5 * x] in y[2] * y[1] + j + snd (Transform.between 0.0 2.0 x)",
    "fun x -> norm (flatten (Linalg.pinv [[x, 2.0, 1.0], [1.0, x * x, 0.5]]))",
    "fun x -> Linalg.norm_nuclear (Linalg.kron [[x, 1.0]] [[2.0, x], [x, 1.0]])",
    "fun x -> Dist.entropy_discrete (Dist.Poisson x) + Dist.kl_discrete (Dist.Poisson x) (Dist.Poisson 2.0)",
    "fun x -> Dist.mv_normal_kl ([x, 0.0], [[1.0, 0.0], [x, 2.0]]) ([0.0, x], [[x, 0.0], [0.5, 1.0]])",
    "fun x -> Dist.logpmf (Dist.Poisson (20.0 * x)) 30 + Dist.logpmf (Dist.Binomial (60, x / 4.0)) 25",
    "fun x -> Dist.logpmf (Dist.Negative_binomial (25.0 * x, x / 4.0)) 30",
    "fun x -> Dist.entropy (Dist.Beta (30.0 * x, 25.0)) + Dist.entropy (Dist.Student_t (50.0 * x, 0.0, 1.0))",
    "fun x -> Dist.cdf (Dist.Student_t (3.0 * x, x, 2.0)) 1.3 + Dist.logpdf (Dist.Student_t (1e19, x, 2.0)) 1.0",
    "fun q -> Stats.quantile (q / 4.0) [3.0, 1.0, 7.0, 2.0]",
    "fun x -> Stats.correlation [1.0, x, 5.0] [2.0, 1.0, x] + Stats.variance [x, 2.0]",
    "fun x -> Stats.kde [1.0, x, 5.0] x + fst (Stats.welch_test [x, 2.0, 7.0] [1.0, x * x])",
    "fun x -> snd (Stats.t_test x [2.5, 1.0, 2.0]) + snd (Stats.chi_square_test [x, 2.0, 3.0] [2.0, x, 3.0])",
    "fun x -> sum (Fft.dct [x, 1.0, x * x] ** 2) + (Fft.idct [x, 1.0, x * x])[1]",
    "fun x -> let (a, b) = Fft.fft2 ([[1.0, x, 2.0], [x, 0.0, x]], [[x, 0.0, x], [x, x, 0.0]]) in a[1, 2] * b[0, 1]",
    "fun x -> sum (Quad.cumulative_trapezoid [0.0, x, 5.0] [x, 1.0, x * x] ** 2)",
    "fun x -> Stats.skewness [x, 2.0, 7.0] + Stats.kurtosis [x, 2.0, 7.0]",
]
WHOLE = [  # functions that know exact values at whole numbers; their slopes there are not those of the values
    *[f"Special.{name}" for name in ("gamma", "factorial", "digamma", "binomial 7.0", "gammainc 2.0", "bessel_y 0")],
    *[f"fun x -> Special.{name}" for name in ("binomial x 2.0", "gammainc x 2.0", "beta x 2.0", "betainc x 2.0 0.4")],
]
SOLUTIONS = [
    "fun w -> fst (Ode.dopri5 tight (fun _ (x, v) -> (v, 0.0 - w * w * x)) 0.0 3.0 (1.0, w))",
    "fun w -> fst (Ode.tsit5 tight (fun t (x, v) -> (v, t - w * x)) 0.0 w (1.0, w))",
    "fun w -> sum (Ode.kvaerno5 tight (fun t y -> [0.0 - 50.0 * (y[0] - cos (w * t)), y[0] * t]) 0.0 1.0 [w, 0.0])",
    "fun w -> sum (Ode.rosenbrock23 rough (fun t y -> [0.0 - 50.0 * (y[0] - w), y[0] * t]) 0.0 1.0 [w, 0.0])",
    "fun w -> Ode.rk4_checkpoint (fun t y -> w * sin (y + t)) 40 0.0 2.0 0.3",
    "fun w -> let at = Ode.dense tight (fun t (x, v) -> (v, t - w * x)) 0.0 3.0 (1.0, w) in fst (at w) * snd (at 2.0)",
    "fun w -> let (t, (h, v)) = Ode.until tight (fun _ (h, _) -> h - 0.5) fall 0.0 9.0 (1.0, w) in t * v",
]


def reference(name: str) -> list:
    return json.loads((REFERENCES / f"{name}.json").read_text())


def dp(value: object) -> str:
    """A value as an argument in DPL."""
    return f"({value!r})" if isinstance(value, float | int) else "[" + ", ".join(map(dp, value)) + "]"  # type: ignore


def printed(dpl, engine: tuple[str, ...], lines: list[str]) -> list[str]:
    run = dpl("run", "--engine", *engine, "-", stdin="".join(f"{line}\n" for line in lines), timeout=600)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@ENGINES
@pytest.mark.parametrize("single", [False, True], ids=["f64", "f32"])
def test_special_functions(dpl, engine: tuple[str, ...], single: bool) -> None:
    cases = [
        case
        for case in reference("special")
        if not single or all(1e-30 < abs(x) < 1e30 for x in (case[2], case[1][-1]))
    ]

    def number(x: object) -> str:
        return f"({x!r}f32)" if single and isinstance(x, float) else f"({x!r})"

    lines = [f"do print (Special.{name} {' '.join(map(number, xs))})" for name, xs, _ in cases]
    worst = [
        f"{case}: {got}"
        for case, got in zip(cases, printed(dpl, engine, lines), strict=True)
        if not isclose(float(got), case[2], rel_tol=2e-4 if single else 2e-13, abs_tol=1e-6 if single else 1e-14)
    ]
    assert not worst, "\n".join(worst)


@ENGINES
def test_special_functions_at_their_edges(dpl, engine: tuple[str, ...]) -> None:
    edges = {
        "gamma 0.0": inf, "gamma (-0.0)": -inf, "gamma (-2.0)": None, "gamma 172.0": inf, "gamma inf": inf,
        "gamma nan": None, "gamma (-inf)": None, "erfc inf": 0.0, "erfc (-inf)": 2.0, "erfc nan": None,
        "erfcx inf": 0.0, "erfcinv 0.0": inf, "erfcinv 2.0": -inf, "erfcinv 2.1": None, "erfcinv (-0.1)": None,
        "erfinv 1.0": inf, "erfinv (-1.0)": -inf, "erfinv 1.5": None, "gammainc 1.0 0.0": 0.0,
        "gammainc 1.0 inf": 1.0, "gammaincc 1.0 inf": 0.0, "gammainc 0.0 1.0": None, "gammainc 1.0 (-1.0)": None,
        "betainc 1.0 1.0 1.5": None, "betainc 2.0 1.0 0.0": 0.0, "betainc 2.0 1.0 1.0": 1.0, "bessel_k 0 0.0": inf,
        "bessel_k 0 (-1.0)": None, "bessel_j 0 0.0": 1.0, "bessel_j 2 0.0": 0.0, "bessel_y 1 0.0": -inf,
        "bessel_y 0 (-1.0)": None, "bessel_y 300 0.1": -inf, "bessel_y 1 inf": 0.0, "bessel_y 2 nan": None,
        "binomial 5.0 6.0": 0.0,
    }  # fmt: skip
    got = printed(dpl, engine, [f"do print (Special.{call})" for call in edges])
    wrong = {c: g for (c, want), g in zip(edges.items(), got, strict=True)
             if (not isnan(float(g)) if want is None else float(g) != want)}  # fmt: skip
    assert not wrong


@ENGINES
def test_zeros_by_brents_method(dpl, engine: tuple[str, ...]) -> None:
    """The numbers of SciPy's `brentq`, and as many calls of the function."""
    lines = []
    for formula, low, high, *_ in reference("root"):
        lines += ["let calls = ref 0", f"let f () x = calls := !calls + 1; {formula}"]
        lines += [f"do print (Root.brent f {dp(low)} {dp(high)} ())", "do print (!calls)"]
        lines += [f"do print (Root.brent (fun () x -> {formula}) ({low}f32) ({high}f32) ())"]
    got = iter(printed(dpl, engine, lines))
    for formula, *_, zero, calls in reference("root"):
        assert (float(next(got)), int(next(got))) == (zero, calls), formula
        assert isclose(float(next(got)), zero, rel_tol=1e-5), formula


@ENGINES
def test_statistics(dpl, engine: tuple[str, ...]) -> None:
    (_, xs), (_, ys), *cases = reference("stats")
    lines = [f"let xs = {dp(xs)}", f"let ys = {dp(ys)}", *(f"do print ({call})" for call, _ in cases)]
    for (_, want), got in zip(cases, printed(dpl, engine, lines), strict=True):
        assert_same_output(got.replace("(", "[").replace(")", "]"), str(want), rel=1e-12)


@ENGINES
def test_curves(dpl, engine: tuple[str, ...]) -> None:
    cases = reference("interp")
    lines = [f"do print (map (Interp.{name} {dp(xs)} {dp(ys)}) {dp(at)})" for name, xs, ys, at, _ in cases]
    for case, got in zip(cases, printed(dpl, engine, lines), strict=True):
        assert_same_output(got, str(case[-1]), rel=1e-12)


# Matrices beside their rows and columns one by one, for sizes with small and with large factors; f32 beside f64.
MATRICES_OF_TRANSFORMS = """
let apart (a : float[n, m]) : float[n, m] * float[n, m] =
  let (re, im) = unzip [for row in a -> Fft.fft (row, 2.0 * row)] in
  let (re, im) = (transpose re, transpose im) in
  let (re, im) = unzip [for j < m -> Fft.fft (re[j], im[j])] in
  (transpose re, transpose im)
let most (a : float[n]) = maximum (abs a)
let difference (a : float[n, m]) =
  let ((re, im), (x, y)) = (Fft.fft2 (a, 2.0 * a), apart a) in
  most (flatten (re - x)) + most (flatten (im - y))
let wave n m = [for i < n, j < m -> sin (float (i * i + 3 * j))]
do print [difference (wave 67 2), difference (wave 5 12), difference (wave 1 6)]
let (single, _) = Fft.fft ([for i < 90 -> f32 (sin (float i))], [for i < 90 -> f32 (cos (float i))])
let (double, _) = Fft.fft ([for i < 90 -> sin (float i)], [for i < 90 -> cos (float i)])
do print (most [for k < 90 -> float single[k] - double[k]])
""".strip().splitlines()


@ENGINES
def test_transforms(dpl, engine: tuple[str, ...]) -> None:
    cases = reference("fft")
    lines = []
    for re_, im, *_ in cases:
        lines += [f"let z = ({dp(re_)}, {dp(im)})", "do print (Fft.fft z)", "do print (Fft.ifft (Fft.fft z))"]
        lines += [f"do print (Fft.irfft {len(re_)} (Fft.rfft (fst z)))"]
    lines += MATRICES_OF_TRANSFORMS
    got = iter(printed(dpl, engine, lines))
    for re_, im, fre, fim in cases:
        for want in (f"({fre}, {fim})", f"({re_}, {im})", f"{re_}"):
            pairs = zip(NUMBER.findall(next(got)), NUMBER.findall(want), strict=True)
            assert all(abs(float(a) - float(b)) < 2e-14 * (1 + 10 * len(re_) ** 0.5) for a, b in pairs)
    assert all(float(x) < 1e-12 for x in NUMBER.findall(next(got)))
    assert float(next(got)) < 1e-4


@ENGINES
def test_distributions(dpl, engine: tuple[str, ...]) -> None:
    cases = reference("continuous")
    lines = ["open Dist"]
    for name, x, q, _ in cases:
        lines.append(f"let d = {name}")
        lines.append(f"do print [logpdf d {dp(x)}, cdf d {dp(x)}, quantile d {q}, mean d, variance d, entropy d]")
    for case, got in zip(cases, printed(dpl, engine, lines), strict=True):
        assert_same_output(f"{case[:3]} {got}", f"{case[:3]} {case[3]}", rel=1e-12)


@ENGINES
def test_distributions_of_whole_numbers(dpl, engine: tuple[str, ...]) -> None:
    cases = reference("discrete")
    lines = ["open Dist"]
    for name, n, _ in cases:
        lines.append(f"let d = {name}")
        lines.append(f"do print [logpmf d ({n}), cdf_discrete d ({n}), mean_discrete d, variance_discrete d]")
    for case, got in zip(cases, printed(dpl, engine, lines), strict=True):
        assert_same_output(f"{case[:2]} {got}", f"{case[:2]} {case[2]}", rel=1e-12)


DENSITIES = """
let families =
  [ Dist.Normal (1.0, 2.5); Dist.Lognormal (0.3, 0.8); Dist.Student_t (4.5, 1.0, 2.0); Dist.Laplace (1.0, 2.0);
    Dist.Logistic (1.0, 2.0); Dist.Gamma (2.7, 1.5); Dist.Gamma (0.6, 1.5);
    Dist.Gamma (40.0, 50.0); Dist.Inverse_gamma (4.2, 1.5); Dist.Beta (2.0, 3.5); Dist.Beta (30.0, 25.0);
    Dist.Exponential 0.7; Dist.Uniform (-1.0, 3.0); Dist.Half_normal 1.7 ]
let says what a b tolerance = if not (abs (a - b) <= tolerance * (1.0 + abs b)) then print $"{what}: {a}, {b}"
let check d =
  let mass f = Quad.integrate_to 1e-11 (fun x -> let p = Dist.pdf d x in if p = 0.0 then 0.0 else p * f x) in
  let (low, high) = match d with Dist.Uniform (a, b) -> (a, b) | Dist.Beta _ -> (0.0, 1.0) | _ -> (0.0 - inf, inf) in
  let parts f = if low = 0.0 - inf then mass f low 0.0 + mass f 0.0 inf else mass f low high in
  says $"{d}: mass" (parts (fun _ -> 1.0)) 1.0 1e-8;
  says $"{d}: mean" (parts (fun x -> x)) (Dist.mean d) 1e-7;
  says $"{d}: entropy" (parts (fun x -> 0.0 - Dist.logpdf d x)) (Dist.entropy d) 1e-7;
  says $"{d}: cdf" (Dist.cdf d (Dist.quantile d 0.37)) 0.37 1e-12;
  let slope = diff (fun x -> Dist.cdf d x) 0.6 in
  says $"{d}: slope of the cdf" slope (Dist.pdf d 0.6) 1e-10;
  let by_parameters f =
    let (g, d0) = (Tree.flatten (grad f d), d) in
    let (_, along) = jvp f d (grad f d) in
    says $"{d}: forward and reverse" along (dot g g) 1e-9;
    if Ad.check_grad f d0 > 1e-6 then print $"{d}: {grad f d}"
  in
  by_parameters (fun d -> Dist.logpdf d 0.6);
  by_parameters (fun d -> Dist.cdf d 0.6);
  by_parameters (fun d -> Dist.quantile d 0.3);
  by_parameters Dist.entropy;
  let xs = Dist.samples (Random.key 5) 400 d in
  let sd = sqrt (Dist.variance d) in
  if abs (mean xs - Dist.mean d) > 4.0 * sd / 20.0 then print $"{d}: samples {mean xs}"
do List.iter check families
"""


@pytest.mark.parametrize("engine", [("native", "-O0"), pytest.param(("interp",), marks=pytest.mark.slow)], ids=str)
def test_densities_quantiles_samples_and_their_derivatives(dpl, engine: tuple[str, ...]) -> None:
    assert printed(dpl, engine, [DENSITIES]) == []


@ENGINES
def test_diagnostics_of_chains(dpl, engine: tuple[str, ...]) -> None:
    cases = reference("chains")
    lines = [f"do print (let c = {dp(draws)} in [Mcmc.rhat c, Mcmc.ess c, Mcmc.ess_tail c])" for draws, *_ in cases]
    for (_, *want), got in zip(cases, printed(dpl, engine, lines), strict=True):
        assert_same_output(got, str(want), rel=1e-9)


LONG = ("kvaerno5", "0.99", "dense tight", "dopri5 tight")  # many steps: many seconds in the interpreter
SLOPES_BY = [("interp",), *(pytest.param(("native", effort), marks=pytest.mark.slow) for effort in ("-O0", "-O2"))]


@pytest.mark.parametrize("engine", SLOPES_BY, ids=str)
def test_slopes(dpl, engine: tuple[str, ...]) -> None:
    """Native code takes long to compile: `cost/` and `agree/` have derivatives of the library in it."""
    order = "check" if engine == ("native", "-O0") else "twice"
    slopes, solutions = (
        [call for call in calls if engine != ("interp",) or not any(map(call.count, LONG))]
        for calls in (SLOPES, SOLUTIONS)
    )
    lines = [FACTS, *(f'do at_both {order} "{call}" ({call})' for call in slopes)]
    lines += [f'do check "{call}" ({call}) 1.3' for call in solutions]
    lines += [f'do check "{call}" ({call}) 3.0' for call in WHOLE]
    assert printed(dpl, engine, lines) == []


ORDERS = """
let slope t y = cos t * y
let exact = exp (sin 2.0)
let order what (solve : int -> float) n expected =
  let (a, b) = (abs (solve n - exact), abs (solve (2 * n) - exact)) in
  let found = log2 (a / b) in
  if abs (found - expected) > 0.15 then print $"{what}: order {found}"
let fine n = { Ode.usual with relative = 10.0 ** (0.0 - float n); absolute = 10.0 ** (0.0 - float n) }
let near what solve = if abs (solve (fine 11) - exact) > 1e-9 then print $"{what}: {solve (fine 11) - exact}"
do order "euler" (fun n -> Ode.euler slope n 0.0 2.0 1.0) 400 1.0
do order "rk4" (fun n -> Ode.rk4 slope n 0.0 2.0 1.0) 80 4.0
do near "dopri5" (fun want -> Ode.dopri5 want slope 0.0 2.0 1.0)
do near "tsit5" (fun want -> Ode.tsit5 want slope 0.0 2.0 1.0)
do near "kvaerno5" (fun want -> (Ode.kvaerno5 want (fun t y -> [slope t y[0]]) 0.0 2.0 [1.0])[0])
let turn t y = [y[1] - 1e3, 1e3 - y[0], cos t]
let one_each = { Ode.usual with relative = 1e-3; absolute = 1e-3 }
let in_steps n =
  let h = 2.0 / float n in
  let y = loop y = [1001.0, 1000.0, 1000.0] for i < n do
    Ode.kvaerno5 one_each turn (h * float i) (h * float (i + 1)) y in
  exact + (y[0] - 1e3 - cos 2.0) + (y[2] - 1e3 - sin 2.0)
do order "kvaerno5" in_steps 8 5.0
do near "backwards" (fun want -> exact - 1.0 + Ode.tsit5 want slope 2.0 0.0 exact)
do near "dense" (fun want ->
  let at = Ode.dense want slope (-0.5) 3.0 (exp (sin (-0.5))) in
  exact + maximum [for i < 60 -> let t = 0.05 * float i - 0.4 in abs (at t - exp (sin t))])
do near "adjoint" (fun want -> Ode.adjoint want (fun () -> slope) 0.0 2.0 ((), 1.0))
do (let y = Ode.rosenbrock23 (fine 7) (fun t y -> [slope t y[0]]) 0.0 2.0 [1.0] in
    if abs (y[0] - exact) > 1e-4 then print y)
let through solve w = let (x, _) = solve (w, (1.0, w)) in x * x
let f w t (x, v) = (v, t - w * w * x)
let by_adjoint = through (Ode.adjoint (fine 11) f 0.0 3.0)
let by_steps = through (fun (w, y) -> Ode.dopri5 (fine 11) (f w) 0.0 3.0 y)
do if abs (grad by_adjoint 2.0 - grad by_steps 2.0) > 1e-7 then print (grad by_adjoint 2.0, grad by_steps 2.0)
"""


@ENGINES
def test_orders_of_solvers(dpl, engine: tuple[str, ...]) -> None:
    assert printed(dpl, engine, [ORDERS]) == []


def with_examples() -> list[str]:
    return sorted(f.stem for f in (ROOT / "stdlib").glob("*.dp") if EXAMPLE.search(f.read_text()))


@pytest.mark.parametrize("module", with_examples())
def test_examples_of_the_library(dpl, module: str) -> None:
    """In the interpreter, which is quick; those of `COMPILED` in native code too."""
    text = (ROOT / "stdlib" / f"{module}.dp").read_text()
    examples = EXAMPLE.findall(text)
    missing = [
        name
        for name in PUBLIC.findall(text)
        if not any(re.search(rf"\b{module.title()}\.{name}(?![\w'])", call) for call, _ in examples)
    ]
    assert not missing or module in INCOMPLETE
    for engine in ("interp", "native") if module in COMPILED else ("interp",):
        got = printed(dpl, (engine,), [f"do print ({call})" for call, _ in examples])
        for (call, want), value in zip(examples, got, strict=True):
            text = json.loads(want) if want.startswith('"') else want  # a string is printed as it is
            assert_same_output(f"{call}: {value}", f"{call}: {text}", rel=1e-13)
