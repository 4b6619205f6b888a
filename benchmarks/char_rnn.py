"""Times the character network in DPL, NumPy and C, side by side on the same text.

    python benchmarks/run.py char_rnn [TEXT-FILE] [ITERATIONS] [--repeat N]

Each program runs as a process of its own, one thread; they take turns, so that a busy machine is unfair to all.  Prints
medians: of the whole run, and of the training alone (the whole less a run of no iterations), with ratios to the
fastest.  C is left out where there is no compiler.  Without a file, the text is the ASCII part of the library.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from contestants import DPL, ENVIRONMENT, HERE, ROOT, c_program


def commands(folder: Path, text: str) -> dict[str, list[str]]:
    """What to run, by name; the number of iterations is to follow."""
    found = {
        "DPL": [*DPL, str(ROOT / "examples" / "char_rnn.dp"), text],
        "NumPy": [sys.executable, str(HERE / "char_rnn_numpy.py"), text],
    }
    binary = c_program(HERE / "char_rnn.c", folder)
    if binary:
        found["C"] = [binary, text]
    return found


def own_text(folder: Path) -> str:
    """A file with the library's text."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "stdlib").glob("*.dp")))
    target = folder / "text.txt"
    target.write_bytes(text.encode("ascii", "ignore"))
    return str(target)


def seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Time the character network in DPL, NumPy and C.")
    parser.add_argument("text", nargs="?")
    parser.add_argument("iterations", nargs="?", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        contestants = commands(Path(folder), options.text or own_text(Path(folder)))
        times: dict[tuple[str, int], list[float]] = {}
        for _ in range(options.repeat + 1):  # the first round fills caches
            for name, command in contestants.items():
                for count in (0, options.iterations):
                    times.setdefault((name, count), []).append(seconds([*command, str(count)]))
    median = {key: statistics.median(taken[1:]) for key, taken in times.items()}
    whole = {name: median[name, options.iterations] for name in contestants}
    training = {name: whole[name] - median[name, 0] for name in contestants}
    print(f"{'':6} {'whole run':>19} {'training':>19}")
    for name in sorted(contestants, key=lambda name: whole[name]):
        columns = (f"{t[name]:8.3f} s {t[name] / min(t.values()):6.1f} x" for t in (whole, training))
        print(f"{name:6} {'  '.join(columns)}")
