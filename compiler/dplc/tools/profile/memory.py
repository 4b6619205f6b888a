"""`dpl profile --memory`: which lines make blocks of memory, how many bytes, and whose lived at the peak."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dpl.diagnostics import DplError

from dplc.machine.run.makers import Maker, Watched, watched
from dplc.machine.run.program import Program, load, run_loaded
from dplc.tools.profile.stacks import Reader, Stack
from dplc.tools.profile.tables import phases, share, sums

UNITS = ("bytes", "kB", "MB", "GB", "TB")


def run_watched(program: Program, args: Sequence[str]) -> tuple[int, Watched, list[Stack], DplError | None]:
    """Run a program whose blocks are watched, in one thread: its exit code, what was noted, the makers with all their
    bytes, and the program's failure."""
    os.environ["DPL_THREADS"] = "1"
    loaded = load(program)
    code, failure = 1, None
    try:
        code = run_loaded(program, loaded, list(args))
    except DplError as error:
        failure = error
    found, reader = watched(loaded), Reader(program, loaded)
    return code, found, [stack(maker, reader, maker.bytes) for maker in found.makers], failure


def stack(maker: Maker, reader: Reader, weight: int) -> Stack:
    codes = reader.read(address - 1 for address in reversed(maker.addresses))
    return Stack(reader.whole(codes), "code", weight)


def table(found: Watched, stacks: Sequence[Stack], top: int) -> str:
    """The tables, with the lines first whose blocks were the most at the peak."""
    if not found.blocks:
        return "no memory was asked for: all values fitted into registers and the stack"
    at_peak = [Stack(s.calls, s.place, m.at_peak) for s, m in zip(stacks, found.makers, strict=True)]
    blocks = [Stack(s.calls, s.place, m.blocks) for s, m in zip(stacks, found.makers, strict=True)]
    head = f"{sized(found.bytes)} in {found.blocks:,} blocks; at most {sized(found.peak)} at a time"
    lines = [head, *phases(stacks, found.bytes)]
    for key, name in ((lambda w: w.text, "line"), (lambda w: w.function, "function")):
        made, lived, count = (sums(which, key)[0] for which in (stacks, at_peak, blocks))
        whole = sums(stacks, key)[1]
        lines += ["", f"at the peak         all     blocks   self   total  {name}"]
        for k in sorted(whole, key=lambda k: (-lived[k], -made[k], -whole[k], k))[:top]:
            shares = f"{share(made[k], found.bytes)} {share(whole[k], found.bytes)}"
            lines.append(f"{sized(lived[k]):>11} {sized(made[k]):>11} {count[k]:>10,} {shares}  {k}")
    return "\n".join(lines)


def sized(count: int) -> str:
    if not count:
        return "0"
    size, unit = float(count), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} {UNITS[0]}" if not unit else f"{size:.1f} {UNITS[unit]}"
