"""The compiled runtime library: one object that all programs share, kept in the cache.

    shared().code           the object: every function, and the library's state
    shared().texts          the text of a symbol in a program's module: a declaration, or an inlined function

Functions that are generated for a type, such as kernels, are part of the program that uses them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dpl.node import node
from dpl.regex import regex
from dpl.system import kept, shipped

from dplc.machine.llvm import target
from dplc.machine.object import cache_file

NAME = "runtime"
# the runtime itself, and the descriptions of elementary functions and of the order of sums
FOLDERS = (Path(__file__).parents[1], Path(cache_file.LANGUAGE, "prims"))

# of functions, and of variables: programs must see them
OWN = regex(r"(?m)^(define |@[\w.]+ = )internal ")


@node
class Shared:
    """The library in two parts."""

    texts: dict[str, str]
    code: bytes


def mentioned(text: str) -> str:
    """The library's part of a program's module: the texts of all symbols in `text`, transitively."""
    from dplc.machine.runtime.library import closure, generated

    texts = shared().texts
    return closure(text, lambda symbol: texts.get(symbol) or generated(symbol))


@cache
def shared() -> Shared:
    """The library, from the cache if it is there."""
    header, code = _kept()
    return Shared(header, code)


def code() -> bytes:
    """The object alone; reads only the cache if it is there."""
    return _kept()[1]


@cache
def _kept() -> tuple[dict[str, str], bytes]:
    path = entry()

    def make() -> tuple[dict[str, str], bytes]:
        data = as_shipped() or packed()
        kept.write(path, data)
        return cache_file.parts(data)

    return kept.once(lambda: cache_file.read(path), make, "compiling the runtime library", "lock-runtime")


def as_shipped() -> bytes | None:
    """The library that came with the installation, if it fits this machine."""
    return shipped.find(NAME, sources(), target.describe())


def entry() -> Path:
    """The library's place in the cache."""
    return kept.place("objects", cache_file.name(b"runtime library", made_by=[str(folder) for folder in FOLDERS]))


def sources() -> list[Path]:
    """The files that the library's code depends on."""
    return [path for folder in FOLDERS for path in folder.rglob("*") if path.suffix in (".py", ".rt")]


def packed() -> bytes:
    """The library as the bytes of a cache file, made now."""
    made = build()
    return cache_file.contents(made.texts, made.code)


def build() -> Shared:
    from dplc.machine.object.assemble import assemble, module
    from dplc.machine.runtime import library

    texts = library.interface()
    whole = library.library(" ".join(f"@{symbol}" for symbol in texts))
    return Shared(texts, assemble(module(OWN.sub(r"\1dso_local ", whole))))
