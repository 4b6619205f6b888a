"""Runs programs in DPL and in C side by side, and compares times, memory and results.

A program is called with a mode, a size and a number of repetitions, and prints for each repetition seconds of processor
time, seconds on the clock, and results.  The contestants take turns, as the machine may be busy; of times the least of
all repetitions but the first is taken, as other work only ever adds to them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from contestants import ENVIRONMENT, HERE, c_program, dpl_program, run
from rows import ROWS, Row

Commands = dict[str, list[str]]
REPEATS = 7  # repetitions in one process


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
        self.results = lines[-1][2:]

    def summary(self) -> dict[str, float]:
        """Milliseconds and megabytes."""
        return {
            "time": 1e3 * min(self.later),
            "first": 1e3 * min(self.first),
            "memory": max(0.0, statistics.median(self.megabytes)),
        }


def programs(name: str, folder: Path) -> Commands:
    """The contestants of a row, built into a folder: DPL, and what it is compared with."""
    row, source = ROWS[name], HERE / ROWS[name].folder
    found = {"DPL": [dpl_program(source / f"{name}.dp", folder)]}
    if (in_numpy := source / f"{name}.py").exists():
        return found | {"NumPy": [sys.executable, str(in_numpy)]}
    binary = c_program(source / f"{row.c or name}.c", folder, row.flags)
    return found | ({"C": [binary]} if binary else {})


def compare(name: str, mode: str, size: int, rounds: int, commands: Commands, folder: Path) -> dict[str, Record]:
    """The contestants take turns.  Memory is what is used more than at the quick size."""
    row, records = ROWS[name], {who: Record() for who in commands}
    little = {who: run([*command, mode, str(row.quick), "1"], folder)[1] for who, command in commands.items()}
    for _ in range(rounds):
        for who, command in commands.items():
            lines, used = run([*command, mode, str(size), str(REPEATS)], folder)
            records[who].add(lines, used - little[who])
    check(mode, row, {who: record.results for who, record in records.items()})
    return records


def check(mode: str, row: Row, results: dict[str, list[float]]) -> None:
    """It is an error if results differ."""
    mine = results["DPL"]
    for name, theirs in results.items():
        if len(mine) != len(theirs) or any(_differ(x, y, row.agree) for x, y in zip(mine, theirs, strict=True)):
            raise ValueError(f"{mode}: the results of DPL and {name} differ: {mine} and {theirs}")


def _differ(x: float, y: float, agree: float) -> bool:
    return not abs(x - y) <= agree * max(abs(x), abs(y), 1e-6)


def results_agree(name: str, folder: Path) -> None:
    """Compares all modes of a row at its quick size, whatever the time."""
    row, commands = ROWS[name], programs(name, folder)
    for mode in row.modes:
        lines = {who: run([*command, mode, str(row.quick), "2"], folder)[0] for who, command in commands.items()}
        for repetition in range(2):
            check(f"{name}, {mode}", row, {who: found[repetition][2:] for who, found in lines.items()})


def profile(name: str, mode: str, size: int, folder: Path) -> str:
    """Where the time goes in DPL, by symbols, as `perf` tells."""
    (binary,), data = programs(name, folder)["DPL"], str(folder / "perf.data")
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "5000", "-o", data]
    command = [*record, binary, mode, str(size), str(REPEATS)]
    subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = ["perf", "report", "-i", data, "--stdio", "--no-children", "--sort", "dso,symbol", "--percent-limit", "1"]
    lines = subprocess.run(report, check=True, capture_output=True, text=True).stdout.splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.startswith("#"))
