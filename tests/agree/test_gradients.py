"""Derivatives by every road: forward, reverse, finite differences, first and second order, in both engines.

A program in `gradients/` defines `f : 'a -> float` and a point `x0 : 'a`; this file appends the measurements.
"""

from pathlib import Path

import pytest
from conftest import EFFORTS

HERE = Path(__file__).parent
LONG = (  # many seconds for the compiler
    "lantern", "linalg_det", "linalg_halves", "linalg_more", "rowless", "edges", "reduce_closures", "axes",
    "convolution_sums", "linalg_spectrum", "linalg_solve", "linalg_factors", "kept_stencils", "nests", "stencils",
    "overwritten", "scans", "open_helpers", "convolution", "ref_contents", "ref_outer", "rows_added", "rearranging",
    "tree_products", "normalised", "guessed_lengths", "records_in_steps", "lags", "shared_more",
    "recursion_on_few_numbers", "two_trees", "strides", "beyond", "final_elements", "written_products",
    "parted_sums", "covariance", "odd_rfft", "dilated", "trains",
)  # fmt: skip
PROGRAMS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
    for path in sorted((HERE / "gradients").glob("*.dp"))
]

HIDDEN = "\nlet x0 = match List.rev (x0 :: []) with x :: _ -> x | [] -> x0\n"  # the compiler does not see its sizes

MEASURE = """
let _v = Tree.map (fun x -> cos (3.0 * x + 0.5)) x0
let _h = 1e-5
let _at s = Tree.axpy s _v x0
let _slope s = Tree.dot (grad f (_at s)) _v
do print (snd (jvp f x0 _v))
do print (_slope 0.0)
do print ((f (_at _h) - f (_at (-_h))) / (2.0 * _h))
do print (snd (jvp (fun x -> snd (jvp f x _v)) x0 _v))
do print (Tree.dot (snd (jvp (grad f) x0 _v)) _v)
do print (Tree.dot (grad (fun x -> snd (jvp f x _v)) x0) _v)
do print (Tree.dot (grad (fun x -> Tree.dot (grad f x) _v) x0) _v)
do print ((_slope _h - _slope (-_h)) / (2.0 * _h))
"""


def close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def measure(dpl, program: Path, tmp_path: Path, *engine: str, hidden: str = "") -> list[float]:
    text = program.read_text(encoding="utf-8") + hidden + MEASURE
    file = tmp_path / program.name
    file.write_text(text, encoding="utf-8")
    run = dpl("run", "--engine", *engine, file)
    assert run.returncode == 0, run.stderr
    return [float(line) for line in run.stdout.split("\n")[-9:-1]]


@EFFORTS
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_road_to_the_derivative(dpl, program: Path, effort: str, tmp_path: Path) -> None:
    hidden = HIDDEN if effort == "-O2" else ""  # arrays of unknown size stay arrays, those of a few elements do not
    native = measure(dpl, program, tmp_path, "native", effort, hidden=hidden)
    interp = measure(dpl, program, tmp_path, "interp")
    for a, b in zip(native, interp, strict=True):
        assert close(a, b, 1e-9), (native, interp)
    forward, reverse, slope, *second, curvature = native
    assert close(forward, reverse, 1e-9)
    assert close(forward, slope, 1e-5), f"finite differences say {slope}, forward {forward}"
    for road in second:  # forward over forward, forward over reverse, reverse over forward, reverse over reverse
        assert close(road, second[0], 1e-9), second
        assert close(road, curvature, 1e-4), f"finite differences say {curvature}, got {second}"
