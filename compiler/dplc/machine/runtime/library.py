"""names mentioned -> the runtime library's text of them, and of what they mention in turn.

Most of the library is written in the language of `lowlevel.py`, in `rt/*.rt`; functions that come in many types or
widths are made to order by `maths.py` and `kernels.py`.  `shared.py` keeps most of it compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from dplc.machine.llvm import target
from dplc.machine.runtime import divisions, kernels, stacks
from dplc.machine.runtime.kernels import Vectors

MENTIONED = re.compile(r"@([A-Za-z_][\w.]*)")
DIVISION = re.compile(r"rt\.(div|mod|quot|rem)\.([iu]\d+)")

# what `*.each.rt` files are read for: TYPE, SIZE in bytes
EACH = {"matmul": (("f64", 8), ("f32", 4)), "transpose": (("", 1), ("", 2), ("", 4), ("", 8))}
# what systems are like, by the names of `*.os.rt`
SYSTEMS = {
    "linux": ("posix", "linux", "glibc"), "musl": ("posix", "linux", "plain"), "macos": ("posix", "macos", "plain"),
    "windows": ("windows", "plain"), "wasi": ("wasi", "plain"),
}  # fmt: skip
# files about what is done rarely, or waits for the world
SMALL = ("executable", "files", "format", "guard", "memory", "output", "report", "show")


@cache
def _source(system: str = target.HOST_SYSTEM):
    """What the files say.  Those about this system have the last word: `libc.rt` defines what Windows calls otherwise,
    and what WebAssembly has in other widths."""
    from dplc.machine.rtl.parse import Source

    common, own = Source(), Source()
    for path in sorted((Path(__file__).parents[1] / "rt").glob("*.rt")):
        text = path.read_text(encoding="utf-8")
        if path.name.endswith(".os.rt"):
            if path.name.removesuffix(".os.rt") in SYSTEMS[system]:
                own.read(text, path.stem in SMALL)
            continue
        if not path.name.endswith(".each.rt"):
            common.read(text, path.stem in SMALL)
            continue
        for ty, size in EACH[path.name.removesuffix(".each.rt")]:
            text_for = text.replace("TYPE", ty).replace("SIZE", str(size)).replace("BITS", str(8 * size))
            common.read(text_for, small=False)
    common.change(own)
    return common


def library(text: str, machine: Vectors | None = None, where: target.Target | None = None) -> str:
    """All that `text` mentions, transitively; `where` says for which machine, `machine` with what vectors, if not those
    of this one."""
    return closure(text, lambda symbol: definition(symbol, machine, where))


def library_for(where: target.Target) -> Callable[[str], str]:
    """The library on another machine."""
    return lambda text: library(text, Vectors.of(where.flags), where)


def interface() -> dict[str, str]:
    """Of every symbol in the files, what a module says that is not to contain it; of what is inlined, its text."""
    from dplc.machine.rtl.parse import declare

    source = _source()
    return {symbol: declare(source, name) or definition(symbol) or "" for symbol, name in source.symbols.items()}


def closure(text: str, define: Callable[[str], str | None]) -> str:
    """What `define` says of the symbols mentioned, and of those it mentions."""
    done: dict[str, str] = {}
    wanted = MENTIONED.findall(text)
    while wanted:
        symbol = wanted.pop()
        if symbol not in done and (body := define(symbol)) is not None:
            done[symbol] = body
            wanted += MENTIONED.findall(body)
    return "\n".join(done.values()) + "\n"


def definition(symbol: str, machine: Vectors | None = None, where: target.Target | None = None) -> str | None:
    """The text of one symbol, None if it is not the library's."""
    from dplc.machine.rtl.functions import translate

    source = _source(where.system if where else target.HOST_SYSTEM)
    if name := source.symbols.get(symbol):
        return translate(source, name)
    return made_to_order(symbol, machine, where)


def made_to_order(symbol: str, machine: Vectors | None = None, where: target.Target | None = None) -> str | None:
    """The text of a function that there is for many types, or machines; this machine's, if nothing else is said."""
    if match := DIVISION.fullmatch(symbol):
        return divisions.definition(match[1], match[2])
    if symbol == stacks.SYMBOL:
        return stacks.definition(where.arch if where else target.arch())
    return kernels.definition(symbol, machine or Vectors.of(target.features()))
