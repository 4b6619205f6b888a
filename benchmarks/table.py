"""Prints what `beside` has found, a row for each mode, and keeps it as JSON.

    python benchmarks/run.py NAME ... | --all [--size N] [--mode MODE] [--rounds N] [--json FILE] [--quick] [--profile]

Times are milliseconds of processor time of one repetition; then the ratio to C, the ratio to the program's own function
in DPL and in C, the first repetition, which asks for its memory, and the memory in MB, in DPL and in C.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

import beside
from rows import ROWS

Found = dict[str, dict[str, float]]  # of one mode: contestant, quantity
HEAD = f"{'':30} {'DPL ms':>9} {'C ms':>9} {'ratio':>7}   {'to function':>13}   {'first ms':>9}   {'MB':>15}"


def _peer(found: Found) -> str | None:
    """What DPL is compared with."""
    return next((who for who in found if who != "DPL"), None)


def _ratio(found: Found, function: Found | None, who: str | None) -> str:
    if function is None or function is found or who not in found:
        return ""
    return f"{found[who]['time'] / function[who]['time']:.1f}"


def line(name: str, mode: str, found: Found, function: Found | None) -> str:
    dpl, peer = found["DPL"], _peer(found)
    other = found[peer] if peer else {"time": math.nan, "memory": math.nan}
    times = f"{dpl['time']:9.3f} {other['time']:9.3f} {dpl['time'] / other['time']:7.2f}"
    own = f"{_ratio(found, function, 'DPL'):>6} {_ratio(found, function, peer):>6}"
    memory = f"{dpl['memory']:7.1f} {other['memory']:7.1f}"
    return f"{name + ', ' + mode:30} {times}   {own}   {dpl['first']:9.3f}   {memory}"


def measure(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Found]:
    """Prints the row's lines, one as soon as it is known."""
    row, commands = ROWS[name], beside.programs(name, folder)
    all_found: dict[str, Found] = {}
    for mode in options.mode or row.modes:
        records = beside.compare(name, mode, options.size or row.size, options.rounds, commands, folder)
        found = all_found[mode] = {who: record.summary() for who, record in records.items()}
        print(line(name, mode, found, all_found.get("function")), flush=True)
    return all_found


def markdown(files: list[Path]) -> str:
    """The table of the README, of what was found; of two files, the first is of before."""
    tables = [json.loads(file.read_text()) for file in files]
    rows = ["| | DPL, ms | C, ms | ratio | gradient / function, DPL and C | MB, DPL and C |", "|---" * 6 + "|"]
    for name, modes in tables[-1].items():
        for mode, found in modes.items():
            all_found = [table[name][mode] for table in tables if mode in table.get(name, {})]
            dpl, peer = found["DPL"], _peer(found) or "DPL"
            times = " → ".join(f"{was['DPL']['time']:.3g}" for was in all_found)
            ratios = " → ".join(f"{was['DPL']['time'] / was[peer]['time']:.2f}" for was in all_found)
            own = ", ".join(filter(None, (_ratio(found, modes.get("function"), who) for who in ("DPL", peer))))
            memory = f"{dpl['memory']:.0f}, {found[peer]['memory']:.0f}"
            rows.append(f"| {name}, {mode} | {times} | {found[peer]['time']:.3g} | {ratios} | {own} | {memory} |")
    return "\n".join(rows)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run.py", description="Time programs in DPL and C, side by side.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(ROWS))
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--size", type=int)
    parser.add_argument("--mode", action="append")
    parser.add_argument("--rounds", type=int, default=3, help="how often the programs take turns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was found")
    parser.add_argument(
        "--show", type=Path, nargs="+", metavar="FILE", help="what was written, as a table for the README"
    )
    parser.add_argument("--quick", action="store_true", help="only compare results, at small sizes")
    parser.add_argument("--profile", action="store_true", help="where the time goes (perf)")
    return parser.parse_args(arguments)


def _one(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Found]:
    if options.quick:
        beside.results_agree(name, folder)
        print(f"{name}: the results agree", flush=True)
    elif options.profile:
        row = ROWS[name]
        for mode in options.mode or row.modes:
            print(f"{name}, {mode}\n{beside.profile(name, mode, options.size or row.size, folder)}", flush=True)
    else:
        return measure(name, options, folder)
    return {}


def main(arguments: list[str]) -> None:
    options = _options(arguments)
    if options.show:
        print(markdown(options.show))
        return
    names, failed = list(ROWS) if options.all else options.names, False
    all_found: dict[str, dict[str, Found]] = {}
    if not (options.quick or options.profile):
        print(HEAD)
    for name in names:
        try:
            with tempfile.TemporaryDirectory() as folder:
                all_found[name] = _one(name, options, Path(folder))
        except (ChildProcessError, ValueError) as problem:
            failed = True
            print(f"{name}: {problem}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(all_found, indent=1) + "\n")
    if failed:
        sys.exit("not all could be measured, or results differ")
