"""Writes the tables of `docs/checked.md`: what modules give beside other systems, and what the examples take.

python tests/unit/stdlib/checked.py            measures the modules, in both engines
python tests/unit/stdlib/checked.py programs   measures the examples: processor time of a run, and its last line
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from comparisons import Module, modules, other_modules

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "checked.md"
DPL = (sys.executable, "-m", "dplc.cli", "run")


def worst(module: Module, single: bool) -> float:
    """The largest difference of both engines."""
    found = []
    for engine in ("interp", "native"):
        run = subprocess.run(
            [*DPL, "--engine", engine, "-"], input=module.program(single), capture_output=True, text=True, check=True
        )
        found += [difference for _, difference in module.differences(run.stdout)]
    return max(found)


def rows_of_modules() -> list[str]:
    rows = ["| module | compared with | numbers | f64 | f32 |", "|---|---|---|---|---|"]
    for module in sorted([*modules(), *other_modules()], key=lambda m: m.name):
        systems = " and ".join(sorted({c.system.split(", to ")[0].split(", whose")[0] for c in module.comparisons}))
        count = sum(len(c.want) for c in module.comparisons)
        double, single = (f"{worst(module, flag):.0e}" for flag in (False, True))
        rows.append(f"| `{module.name}` | {systems} | {count} | {double} | {single} |")
        print(rows[-1], flush=True)
    return rows


def rows_of_programs() -> list[str]:
    rows = ["| program | seconds of the processor | its last line |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "DPL_CACHE": cache}
        warm = [*DPL, "--engine", "native", "-"]  # the library and the runtime are compiled before
        subprocess.run(warm, input=b"do print 1", env=environment, check=True, stdout=subprocess.DEVNULL)
        for path in sorted((ROOT / "examples").glob("*.dp")):
            rows.append(row_of_program(path, environment))
            print(rows[-1], flush=True)
    return rows


def row_of_program(path: Path, environment: dict[str, str]) -> str:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([*DPL, path], capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = (run.stdout.strip().splitlines() or [""])[-1].strip().replace("|", " ")[:90]
    return f"| `{path.stem}` | {seconds:.1f} | `{last}` |"


def write(name: str, rows: list[str]) -> None:
    """Puts rows between the marks of a table on the page."""
    text = PAGE.read_text()
    table = f"<!-- {name} -->\n" + "\n".join(rows) + f"\n<!-- end of {name} -->"
    PAGE.write_text(re.sub(rf"<!-- {name} -->.*?<!-- end of {name} -->", lambda _: table, text, flags=re.DOTALL))


if __name__ == "__main__":
    if sys.argv[1:] == ["programs"]:
        write("programs", rows_of_programs())
    else:
        write("modules", rows_of_modules())
