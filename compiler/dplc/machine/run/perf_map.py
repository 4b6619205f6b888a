"""With DPL_PERF=1, `perf` knows the functions of code that was made in memory: `dpl run` and `dpl.load` write its map.

    7f31c0a41000 1c4 loss.3          in /tmp/perf-PID.map: address, size, name

This module imports little, as programs from the cache start with it.
"""

from __future__ import annotations

import os

ASKED = os.environ.get("DPL_PERF", "") not in ("", "0")


def note(code: bytes, symbol: str, address: int) -> None:
    """Writes the functions of an object, in which the symbol is at this address, if that is asked for.  A map that
    cannot be written is left out: the program runs all the same."""
    if not ASKED:
        return
    from contextlib import suppress

    from dplc.machine.object import elf

    known = elf.read(code)
    text = known.section(".text")
    base = address - next(s.value for s in known.symbols if s.name == symbol)
    functions = [s for s in known.symbols if s.section == text and s.size]
    lines = [f"{base + s.value:x} {s.size:x} {s.name.removeprefix('dpl ')}\n" for s in functions]
    with suppress(OSError), open(f"/tmp/perf-{os.getpid()}.map", "a", encoding="utf-8") as file:
        file.write("".join(lines))
