"""names mentioned -> the runtime library's text of them, and of what they mention in turn.

Most of the library is written in the language of `lowlevel.py`, in `rt/*.rt`; functions that come in many sizes or
types are made to order by `maths.py` and `kernels.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from dplc.machine import kernels, maths
from dplc.machine.lowlevel import Source

MENTIONED = re.compile(r"@([A-Za-z_][\w.]*)")
DIVISION = re.compile(r"rt\.(div|mod|quot|rem)\.([iu]\d+)")


@cache
def _source() -> Source:
    source = Source()
    for path in sorted(Path(__file__).with_name("rt").glob("*.rt")):
        source.read(path.read_text(encoding="utf-8"))
    return source


def definition(symbol: str, width: int) -> str | None:
    """The text of one symbol, None if it is not the library's."""
    source = _source()
    if name := source.symbols().get(symbol):
        return source.translate(name)
    if match := DIVISION.fullmatch(symbol):
        return maths.division(match[1], match[2])
    return kernels.definition(symbol, width)


def library(text: str, width: int = 64) -> str:
    """What `text` mentions, transitively; vectors have `width` bytes."""
    done: dict[str, str] = {}
    wanted = MENTIONED.findall(text)
    while wanted:
        symbol = wanted.pop()
        if symbol not in done and (body := definition(symbol, width)) is not None:
            done[symbol] = body
            wanted += MENTIONED.findall(body)
    return "\n".join(done.values()) + "\n"
