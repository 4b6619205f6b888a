"""names mentioned -> the runtime library's text of them, and of what they mention in turn.

Most of the library is written in the language of `lowlevel.py`, in `rt/*.rt`; functions that come in many types or
widths are made to order by `maths.py` and `kernels.py`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dplc.machine import kernels, maths
from dplc.machine.kernels import Vectors
from dplc.machine.lowlevel import Source
from dplc.machine.lowlevel_function import translate

MENTIONED = re.compile(r"@([A-Za-z_][\w.]*)")
DIVISION = re.compile(r"rt\.(div|mod|quot|rem)\.([iu]\d+)")

# what `*.each.rt` files are read for: TYPE, SIZE in bytes
EACH = {"matmul": (("f64", 8), ("f32", 4)), "transpose": (("", 1), ("", 2), ("", 4), ("", 8))}
SMALL = ("files", "format", "memory", "output", "show")  # files about what is done rarely, or waits for the world


@cache
def _source() -> Source:
    source = Source()
    for path in sorted(Path(__file__).with_name("rt").glob("*.rt")):
        text = path.read_text(encoding="utf-8")
        if not path.name.endswith(".each.rt"):
            source.read(text, path.stem in SMALL)
            continue
        for ty, size in EACH[path.name.removesuffix(".each.rt")]:
            source.read(text.replace("TYPE", ty).replace("SIZE", str(size)).replace("BITS", str(8 * size)), small=False)
    return source


def definition(symbol: str, machine: Vectors) -> str | None:
    """The text of one symbol, None if it is not the library's."""
    source = _source()
    if name := source.symbols.get(symbol):
        return translate(source, name)
    if match := DIVISION.fullmatch(symbol):
        return maths.division(match[1], match[2])
    return kernels.definition(symbol, machine)


def library(text: str, machine: Vectors) -> str:
    """What `text` mentions, transitively."""
    done: dict[str, str] = {}
    wanted = MENTIONED.findall(text)
    while wanted:
        symbol = wanted.pop()
        if symbol not in done and (body := definition(symbol, machine)) is not None:
            done[symbol] = body
            wanted += MENTIONED.findall(body)
    return "\n".join(done.values()) + "\n"
