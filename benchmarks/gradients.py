"""How many times its function a gradient costs, in programs as people write them.

    python benchmarks/gradients.py [NAME ...] [--json FILE] [--before FILE]
    python benchmarks/gradients.py [NAME ...] --check [--engine interp]

Each `gradients/KIND/NAME.dp` has a function `f` of numbers in any data, and a point `x0`.  For each are printed the
least time of 25 calls of `f`, and of `grad f`, in microseconds, and how many times as long the gradient takes; then,
for each kind, how many programs are at most at four, the median and the worst.  A NAME may be a kind.  `--before` shows
beside this what an earlier `--json` has written.

`--check` times nothing: along one direction, the gradient has to agree with forward mode and with finite differences.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from contestants import DPL, ENVIRONMENT, HERE

FOLDER = HERE / "gradients"
ASKED = 4.0  # functions, at most, that a gradient should cost

TIMED = """
let _least work =
  loop best = 1.0 / 0.0 for i < 25 do
    let (_, seconds, _) = Measure.timed (fun _ _ -> x0) work (fun _ -> []) 0 i in
    min best seconds
do print $"{_least f} {_least (fun x -> grad f x)}"
"""
CHECKED = """
let _v = Tree.map (fun x -> cos (3.0 * x + 0.5)) x0
let _along s = f (Tree.axpy s _v x0)
let _slope h = (8.0 * (_along h - _along (-h)) - (_along (2.0 * h) - _along (-2.0 * h))) / (12.0 * h)
do print $"{Tree.dot (grad f x0) _v} {snd (jvp f x0 _v)} {_slope 1e-5} {_slope 1e-7} {f x0}"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--engine", choices=["native", "interp"], default="native", help="for --check")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--before", type=Path, metavar="FILE")
    wanted = parser.parse_args()
    paths = chosen(wanted.names)
    if wanted.check:
        sys.exit(0 if check(paths, wanted.engine) else 1)
    before = json.loads(wanted.before.read_text()) if wanted.before else {}
    times = {}
    for path in paths:
        times[path] = printed(path, TIMED)
        row(path.stem, times[path], before.get(path.stem))
    summary({path: gradient / function for path, (function, gradient) in times.items()})
    if wanted.json:
        wanted.json.write_text(json.dumps({path.stem: pair for path, pair in times.items()}, indent=1) + "\n")


def chosen(names: list[str]) -> list[Path]:
    """The programs of these names and kinds, or all."""
    found = sorted(FOLDER.glob("*/*.dp"))
    if unknown := set(names) - {path.stem for path in found} - {path.parent.name for path in found}:
        sys.exit(f"no program and no kind is called {', '.join(sorted(unknown))}; they are in {FOLDER}")
    return [path for path in found if not names or path.stem in names or path.parent.name in names]


def printed(path: Path, end: str, engine: str = "native") -> list[float]:
    """The numbers that a program prints, if it ends so."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, path.name)
        program.write_text(f'import "{HERE / "measure.dp"}" as Measure\n\n{path.read_text()}{end}')
        options = ["--engine", engine, *(["-O2"] if engine == "native" else [])]
        run = subprocess.run([*DPL, *options, str(program)], env=ENVIRONMENT, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{path}: exit code {run.returncode}\n{run.stderr}")
    return [float(word) for word in run.stdout.split()]


def check(paths: list[Path], engine: str) -> bool:
    """Whether all slopes agree; those that do not are printed."""
    right = True
    for path in paths:
        if wrong := disagreement(path, engine):
            print(f"{path.stem}: {wrong}", flush=True)
            right = False
    return right


def disagreement(path: Path, engine: str = "native") -> str:
    """What is wrong with the slope of a program along one direction; nothing if all ways agree.  Of two differences
    one has to: the other may be across a kink, or have too few digits."""
    reverse, forward, *differences, value = printed(path, CHECKED, engine)
    scale = max(abs(reverse), abs(forward), 1e-3 * abs(value), 1e-6)
    if abs(reverse - forward) <= 1e-8 * scale and min(abs(reverse - d) for d in differences) <= 1e-4 * scale:
        return ""
    return f"reverse {reverse}, forward {forward}, finite differences {differences}"


def row(name: str, times: list[float], before: list[float] | None) -> None:
    print(f"{name:20}{numbers(times)}" + (f"   before:{numbers(before)}" if before else ""), flush=True)


def numbers(times: list[float]) -> str:
    function, gradient = times
    return f"{1e6 * function:9.1f}{1e6 * gradient:9.1f}{gradient / function:8.2f}"


def summary(ratios: dict[Path, float]) -> None:
    """For each kind: how many programs are at most at what is asked, the median, the worst."""
    for kind in dict.fromkeys(path.parent.name for path in ratios):
        found = {path.stem: ratio for path, ratio in ratios.items() if path.parent.name == kind}
        few = sum(ratio <= ASKED for ratio in found.values())
        worst = max(found, key=found.__getitem__)
        print(f"{kind}: {few} of {len(found)} at most {ASKED:g}, ", end="")
        print(f"median {statistics.median(found.values()):.2f}, worst {found[worst]:.1f} ({worst})")


if __name__ == "__main__":
    main()
