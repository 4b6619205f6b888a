"""How long a program takes to compile and to start: processor seconds to its first output, and to its end.

    python benchmarks/compile.py [--only NAME ...] [--repeat N] [--json FILE] [--compare FILE]

The programs are the examples, those of `benchmarks/programs/`, and `thousand`, a generated program of 1,000 lines
without derivatives.  Each is run by `dpl run FILE` in a fresh process, whose output is a terminal:

cold     the library, the runtime and the compiler's bytecode are in the cache, the program is not
cached   the same program again; a program that ends in the interpreter is compiled in its second run, so its third

Printed are processor seconds to the first output and to the end, with those of the optimiser's process; the same by the
clock; and ratios of the former to a fixed piece of work that is measured around the run: the least of N runs each.  A
busy machine slows all programs alike, so ratios of different days can be compared, seconds cannot.  One more
compilation gives the shares of the stages in its time (`--timings`: `front` ends with `lambda_sets`, `middle` with
`reference_counts`), another the lines of LLVM.
`--compare` shows the ratios beside those that an earlier `--json` wrote.  It needs Linux.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from contestants import DPL, ENVIRONMENT, HERE, ROOT

EXAMPLES = ROOT / "examples"
# Arguments of programs that would run for long, or read many files of the project.
ARGUMENTS = {"char_rnn": [str(ROOT / "stdlib" / "prelude.dp"), "200"]}
# Its run fills the caches of the library and the runtime.
WARM = "do print (grad (fun x -> sum (map (fun y -> x * y) (tabulate 3 (fun i -> float i)))) 2.0)\n"
STAGE = re.compile(r"^ *(\w+) +([\d.]+) ms", re.MULTILINE)
GROUPS = ("front", "middle", "llvm", "object")
FIRST_OF = {"lower": "middle", "llvm": "llvm", "object": "object"}  # the stages that begin a group
SECTIONS = 50  # of the generated program, of 20 lines each


@dataclass
class Run:
    """Seconds of one run, or the least of several; `cpu` is user and system time, `ratio` that of the fixed work."""

    first_cpu: float
    first_wall: float
    first_ratio: float
    cpu: float
    wall: float
    ratio: float

    def least(self, other: Run) -> Run:
        return Run(*(min(getattr(self, f.name), getattr(other, f.name)) for f in fields(Run)))


@dataclass
class Record:
    """Everything measured of one program."""

    cold: Run
    cached: Run
    groups: dict[str, float]
    lines: int


# ---- measuring ----


def fixed_work() -> float:
    """Processor seconds of work that never changes: half in Python's interpreter, half in compiled code."""
    begin = time.process_time()
    table: dict[int, int] = {}
    for i in range(600_000):
        table[i * 7919 % 1009] = table.get(i % 1009, i) + 1
    data = bytes(i * i % 251 for i in range(1000)) * 300
    for _ in range(90):
        zlib.compress(data, 9)
    return time.process_time() - begin


def run(file: Path, cache: Path) -> Run:
    """One run in a fresh process; its output goes to a terminal, so it is written line by line."""
    before = fixed_work()
    ours, theirs = pty.openpty()
    begin = time.perf_counter()
    command = [*DPL, str(file), *ARGUMENTS.get(file.stem, [])]
    process = subprocess.Popen(
        command, env=environment(cache), cwd=ROOT, stdout=theirs, stderr=subprocess.DEVNULL, start_new_session=True
    )
    os.close(theirs)
    read(ours)
    first_wall, first_cpu = time.perf_counter() - begin, processor_time(process.pid)
    while read(ours):
        pass
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    os.close(ours)
    if process.returncode:
        sys.exit(f"{file}: exit code {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    first_cpu = min(first_cpu or cpu, cpu)
    cpu += orphans()
    fixed = (before + fixed_work()) / 2
    return Run(first_cpu, first_wall, first_cpu / fixed, cpu, wall, cpu / fixed)


def orphans() -> float:
    """Processor seconds of the processes that a run has left behind, when they have ended: the optimiser."""
    total = 0.0
    with suppress(ChildProcessError):
        while True:
            usage = os.wait4(-1, 0)[2]
            total += usage.ru_utime + usage.ru_stime
    return total


def adopt_orphans() -> None:
    """Become the parent of what the runs leave behind (PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def read(terminal: int) -> bytes:
    """What was written next; nothing at the end, which a terminal reports as an error."""
    with suppress(OSError):
        return os.read(terminal, 1 << 16)
    return b""


def processor_time(group: int) -> float:
    """Processor seconds so far of a process group."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        with suppress(OSError, IndexError):  # a process may end meanwhile
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                total += time.clock_gettime(~int(entry.name) << 3 | 2)  # what clock_getcpuclockid gives in C
    return total


def environment(cache: Path) -> dict[str, str]:
    return ENVIRONMENT | {"DPL_CACHE": str(cache)}


def fill_bytecode(file: Path, warm: Path) -> None:
    """Put the bytecode of all modules that a program needs into the cache, where an installation has it.  A run whose
    program is like none before would compile them from their sources."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        shutil.copytree(warm, cache)
        done(["run", str(file), *ARGUMENTS.get(file.stem, [])], cache)
        orphans()
        if (cache / "bytecode").exists():
            shutil.copytree(cache / "bytecode", warm / "bytecode", dirs_exist_ok=True)


def measure(file: Path, warm: Path, repeat: int) -> Record:
    cold, cached = [], []
    fill_bytecode(file, warm)
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder) / "cache"
            shutil.copytree(warm, cache)
            cold.append(run(file, cache))
            done(["run", str(file), *ARGUMENTS.get(file.stem, [])], cache)
            cached.append(run(file, cache))
    lines = done(["dump", "llvm", str(file)], warm).stdout.count("\n")
    return Record(least(cold), least(cached), groups(file, warm), lines)


def least(runs: list[Run]) -> Run:
    first, *others = runs
    for other in others:
        first = first.least(other)
    return first


def groups(file: Path, cache: Path) -> dict[str, float]:
    """The share of each group of stages in the time that it takes to compile."""
    words = ["run", "--engine", "native", "--no-cache", "--timings", str(file), *ARGUMENTS.get(file.stem, [])]
    seconds: dict[str, float] = dict.fromkeys(GROUPS, 0.0)
    group = "front"
    for stage, milliseconds in STAGE.findall(done(words, cache).stderr):
        if stage != "total":
            group = FIRST_OF.get(stage, group)
            seconds[group] += float(milliseconds)
    total = sum(seconds.values())
    return {group: part / total for group, part in seconds.items()}


def done(words: list[str], cache: Path) -> subprocess.CompletedProcess[str]:
    command = [*DPL[:-1], *words]
    return subprocess.run(command, env=environment(cache), cwd=ROOT, capture_output=True, text=True, check=True)


# ---- the programs ----


def programs(folder: Path) -> dict[str, Path]:
    """Every program by its name; the generated one is written into `folder`."""
    thousand = folder / "thousand.dp"
    thousand.write_text(thousand_lines())
    examples = sorted(EXAMPLES.glob("*.dp"), key=lambda path: (path.stem != "hello", path.stem))
    return {path.stem: path for path in [*examples, *sorted((HERE / "programs").glob("*.dp")), thousand]}


SECTION = """\
type item{i} = {{ name{i} : string; price{i} : float; count{i} : int }}
type order{i} = Empty{i} | Line{i} of item{i} * order{i}

let rec total{i} order =
  match order with
  | Empty{i} -> 0.0
  | Line{i} (item, rest) -> item.price{i} * float item.count{i} + total{i} rest

let rec build{i} n order =
  if n = 0 then order
  else
    let item = {{ name{i} = $"item {{n}}"; price{i} = float (n * n % {a}) + 0.5; count{i} = n % {b} + 1 }} in
    build{i} (n - 1) (Line{i} (item, order))

let first{i} order = match order with Empty{i} -> "none" | Line{i} (item, _) -> item.name{i}
let reduced{i} rate order = {previous}total{i} order * (1.0 - rate / 100.0)
let order{i} = build{i} {n} Empty{i}
let found{i} = List.filter (fun n -> n % {b} = 1) [{n}; {a}; {b}]
do print $"{{first{i} order{i}}}: {{total{i} order{i}:.2f}}, reduced {{reduced{i} {b}.0 order{i}:.2f}}, {{found{i}}}"

"""


def thousand_lines() -> str:
    """A program as people write them, but longer: records, variants, recursion, lists, printing.  Five sections each
    call one another."""
    return "".join(
        SECTION.format(
            i=i, a=7 + i % 11, b=2 + i % 3, n=5 + i, previous=f"reduced{i - 1} rate order{i - 1} + " if i % 5 else ""
        )
        for i in range(SECTIONS)
    )


# ---- the report ----

RUNS = f"{'first':>7}{'end':>6}{'clock':>7}{'clock':>6}{'ratio':>8}{'ratio':>7}"
HEAD = f"{'':20}{'cold':>13}{'cached':>43}\n{'':20}{RUNS}{RUNS}{''.join(f'{group:>8}' for group in GROUPS)}{'lines':>8}"


def row(name: str, record: Record) -> str:
    text = f"{name:20}"
    for r in (record.cold, record.cached):
        text += f"{r.first_cpu:7.2f}{r.cpu:6.2f}{r.first_wall:7.2f}{r.wall:6.2f}{r.first_ratio:8.2f}{r.ratio:7.2f}"
    return text + "".join(f"{record.groups[group]:8.0%}" for group in GROUPS) + f"{record.lines:8}"


def compare(before: dict[str, Record], after: dict[str, Record]) -> None:
    """The ratios to the fixed work before, after, and after divided by before; and the lines of LLVM."""
    columns = ("cold, first output", "cold, end", "cached, first output", "cached, end", "lines of LLVM")
    print("\n" + f"{'before, after, after / before':30}" + "".join(f"{column:>26}" for column in columns))
    for name in after:
        if name in before:
            pairs = zip(figures(before[name]), figures(after[name]), strict=True)
            print(f"{name:30}" + "".join(f"{short(a):>12}{short(b):>8}{b / a:6.2f}" for a, b in pairs))


def figures(record: Record) -> tuple[float, ...]:
    cold, cached = record.cold, record.cached
    return cold.first_ratio, cold.ratio, cached.first_ratio, cached.ratio, record.lines


def short(figure: float) -> str:
    return str(figure) if isinstance(figure, int) else f"{figure:.2f}"


def save(file: str, records: dict[str, Record]) -> None:
    Path(file).write_text(json.dumps({name: rounded(asdict(r)) for name, r in records.items()}, indent=1) + "\n")


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return round(value, 4)


def load(file: str) -> dict[str, Record]:
    return {
        name: Record(Run(**given["cold"]), Run(**given["cached"]), given["groups"], given["lines"])
        for name, given in json.loads(Path(file).read_text()).items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs, such as hello or kalman")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="cold runs of each program")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--compare", metavar="FILE", help="figures that --json wrote earlier")
    options = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        there = programs(folder)
        if unknown := set(options.only or ()) - set(there):
            parser.error(f"no program {', '.join(sorted(unknown))}; there are {', '.join(there)}")
        warm = folder / "cache"
        (folder / "warm.dp").write_text(WARM)
        done(["run", str(folder / "warm.dp")], warm)
        orphans()  # one has compiled the runtime
        print(HEAD, flush=True)
        measured = {}
        for name in options.only or there:
            measured[name] = measure(there[name], warm, options.repeat)
            print(row(name, measured[name]), flush=True)
            if options.json:
                save(options.json, measured)
    if options.compare:
        compare(load(options.compare), measured)


if __name__ == "__main__":
    main()
