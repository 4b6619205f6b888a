"""Derivatives by every road: forward, reverse, finite differences, first and second order, in both engines.

A program in `gradients/` defines `f : 'a -> float` and a point `x0 : 'a`; this file appends the measurements.
"""

from pathlib import Path
from zlib import crc32

import pytest

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

FIRST = """
let _v = Tree.map (fun x -> cos (3.0 * x + 0.5)) x0
let _h = 1e-5
let _at s = Tree.axpy s _v x0
let _slope s = Tree.dot (grad f (_at s)) _v
do print (snd (jvp f x0 _v))
do print (_slope 0.0)
do print ((f (_at _h) - f (_at (-_h))) / (2.0 * _h))
do print ((_slope _h - _slope (-_h)) / (2.0 * _h))
"""
SECOND = (  # forward over forward, forward over reverse, reverse over forward, reverse over reverse
    "snd (jvp (fun x -> snd (jvp f x _v)) x0 _v)",
    "Tree.dot (snd (jvp (grad f) x0 _v)) _v",
    "Tree.dot (grad (fun x -> snd (jvp f x _v)) x0) _v",
    "Tree.dot (grad (fun x -> Tree.dot (grad f x) _v) x0) _v",
)

RUNS = pytest.mark.parametrize(
    ("effort", "roads"),
    [  # the second derivatives are most of what is compiled: the quick run takes one road, another for each program
        pytest.param("-O0", 1, id="-O0"),
        pytest.param("-O0", 4, id="-O0-all", marks=pytest.mark.slow),
        pytest.param("-O2", 4, id="-O2", marks=pytest.mark.slow),
    ],
)


def close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def measure(dpl, program: Path, text: str, tmp_path: Path, *engine: str) -> list[float]:
    file = tmp_path / program.name
    file.write_text(text, encoding="utf-8")
    run = dpl("run", "--engine", *engine, file)
    assert run.returncode == 0, run.stderr
    return [float(line) for line in run.stdout.split("=measured=\n")[1].splitlines()]


@RUNS
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_road_to_the_derivative(dpl, program: Path, effort: str, roads: int, tmp_path: Path) -> None:
    text = program.read_text(encoding="utf-8")
    chosen = SECOND if roads == len(SECOND) else [SECOND[crc32(program.stem.encode()) % len(SECOND)]]
    measured = 'do print "=measured="\n' + FIRST + "".join(f"do print ({road})\n" for road in chosen)
    hidden = HIDDEN if effort == "-O2" else ""  # arrays of unknown size stay arrays, those of a few elements do not
    native = measure(dpl, program, text + hidden + measured, tmp_path, "native", effort)
    interp = measure(dpl, program, text + measured, tmp_path, "interp")
    for a, b in zip(native, interp, strict=True):
        assert close(a, b, 1e-9), (native, interp)
    forward, reverse, slope, curvature, *second = native
    assert close(forward, reverse, 1e-9)
    assert close(forward, slope, 1e-5), f"finite differences say {slope}, forward {forward}"
    for road in second:
        assert close(road, second[0], 1e-9), second
        assert close(road, curvature, 1e-4), f"finite differences say {curvature}, got {second}"
