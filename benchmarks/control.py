"""Times derivatives through control flow in DPL and in C.

    python benchmarks/run.py NAME [SIZE] [--repeat N]

A benchmark is `control/NAME.dp` and `control/NAME.c`; both are called with a mode (which derivative), a size and a
number of repetitions, and print seconds and results of each repetition.  They take turns, as the machine may be busy.
Printed are, for each mode, the least time of a repetition and its ratio to that of C (a busy machine only ever adds to
times); the least of a first repetition, which asks for its memory; and the most memory that was in use, less that of a
run on nothing.  It is an error if the results differ.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from contestants import DPL, ENVIRONMENT, HERE, c_program

FOLDER = HERE / "control"
NESTED = ("FF", "FR", "RF", "RR")
BENCHMARKS = {  # modes, and the usual size
    "saddle": (NESTED, 1000),
    "particle": (NESTED, 1000),
    "newton": (("forward", "reverse", "whole"), 1_000_000),
    "lotka": (("forward", "reverse"), 1_000_000),
    "tree": (("forward", "reverse"), 30),
    "logistic": (("forward", "reverse"), 10_000_000),
    "checkpoint": (("reverse",), 1_000_000),
}
REPEATS = 7  # repetitions in one process
AGREE = 1e-7  # relative: C computes with -ffast-math, and where it stops may depend on the last bit


@dataclass
class Record:
    """What the runs of one program in one mode have shown."""

    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)
    results: list[float] = field(default_factory=list)

    def add(self, lines: list[list[float]], megabytes: float) -> None:
        times = [line[0] for line in lines]
        self.first.append(times[0])
        self.later += times[1:]
        self.megabytes.append(megabytes)
        self.results = lines[0][1:]


def run(command: list[str]) -> tuple[list[list[float]], float]:
    """What it prints, and the most memory it used, in MB."""
    most = 0.0
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, peak(process.pid))
            time.sleep(0.002)
        assert process.stdout is not None
        printed = process.stdout.read()
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return [[float(word) for word in line.split()] for line in printed.splitlines()], most


def peak(pid: int) -> float:
    """The most memory that a running process had so far.  (What `wait4` reports begins with that of its parent.)"""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), default=0.0)


def compare(commands: dict[str, list[str]], mode: str, size: int, rounds: int) -> dict[str, Record]:
    records = {name: Record() for name in commands}
    empty: dict[str, float] = {}
    for name, command in commands.items():
        run([*command, mode, "1", "1"])  # compiles
        empty[name] = run([*command, mode, "1", "1"])[1]
    for _ in range(rounds):
        for name, command in commands.items():
            lines, used = run([*command, mode, str(size), str(REPEATS)])
            records[name].add(lines, used - empty[name])
    return records


def differ(a: list[float], b: list[float]) -> bool:
    return len(a) != len(b) or any(abs(x - y) > AGREE * max(abs(x), abs(y), 1e-12) for x, y in zip(a, b, strict=True))


def report(mode: str, records: dict[str, Record]) -> None:
    c = records.get("C")
    for name, record in records.items():
        time, first, room = min(record.later), min(record.first), statistics.median(record.megabytes)
        ratios = f"{time / min(c.later):6.2f} x" if c else ""
        print(f"{mode:8} {name:4} {1e3 * time:10.2f} ms {ratios:>9} {1e3 * first:10.2f} ms {room:8.1f} MB", flush=True)
    if c and differ(c.results, records["DPL"].results):
        sys.exit(f"the results differ: {records['DPL'].results} and {c.results}")


def main(name: str, arguments: list[str]) -> None:
    modes, usual = BENCHMARKS[name]
    parser = argparse.ArgumentParser(description=f"Time `{name}` in DPL and C.")
    parser.add_argument("size", nargs="?", type=int, default=usual)
    parser.add_argument("--repeat", type=int, default=3, help="how often the programs take turns")
    parser.add_argument("--mode", choices=modes, action="append")
    options = parser.parse_args(arguments)
    print(
        f"{name}, size {options.size}\n{'':13} {'a repetition':>13} {'':>9} {'the first':>13} {'memory':>11}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        commands = {"DPL": [*DPL, str(FOLDER / f"{name}.dp")]}
        binary = c_program(FOLDER / f"{name}.c", Path(folder))
        if binary:
            commands["C"] = [binary]
        for mode in options.mode or modes:
            report(mode, compare(commands, mode, options.size, options.repeat))
