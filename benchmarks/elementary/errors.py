"""Measures the errors of the elementary functions beside mpmath, and writes the table in `docs/elementary.md`.

python benchmarks/elementary/errors.py [POINTS]     so many random points for each function and type (20,000)
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("lang", "tests")]

from dpl.prims import elementary  # noqa: E402
from true_functions import TRUE, TYPES, error, hard_points, random_points  # noqa: E402

PAGE = ROOT / "docs" / "elementary.md"
START, END = "<!-- errors -->", "<!-- end -->"


def worst(name: str, ty: str, count: int) -> str:
    run = elementary.function(name, ty)
    points = [*random_points(name, ty, count, seed=3), *hard_points(name, ty)]
    found, place = max((error(name, run(*args), args, ty), args) for args in points)
    return f"{found:.2f} at {', '.join(f'{x:.6g}' for x in place)}"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    lines = ["| function | f64 | f32 |", "|---|---|---|"]
    for name in sorted(TRUE):
        lines.append(f"| `{name}` | {' | '.join(worst(name, ty, count) for ty in TYPES)} |")
        print(lines[-1], flush=True)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    table = "\n".join([START, f"Greatest errors at {count:,} random points and the hard ones:", "", *lines, END])
    PAGE.write_text(before + table + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
