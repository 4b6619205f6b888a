"""the runtime library -> one object that all programs share, compiled once and kept in the cache.

    shared().code           the object: every function that is not inlined, and the library's state
    shared().texts          what a program's module says of a symbol: a declaration, or all of it if it is inlined

Kernels and divisions, which are made to order for a type, stay with the program that asks for them.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from dpl import kept
from dpl.node import node

from dplc.machine.object import cache_file

# functions that are inlined need not be in the object; what is left can be called, and seen, from a program
OWN = re.compile(r"(?m)^(define |@[\w.]+ = )internal (?!.*alwaysinline)")


@node
class Shared:
    """The library in two parts."""

    texts: dict[str, str]
    code: bytes


def mentioned(text: str) -> str:
    """What a program's module has to say of all that `text` mentions, transitively."""
    from dplc.machine.runtime.library import closure, made_to_order

    texts = shared().texts
    return closure(text, lambda symbol: texts.get(symbol) or made_to_order(symbol))


@cache
def shared() -> Shared:
    header, code = _kept()
    return Shared(json.loads(header), code)


def code() -> bytes:
    """The object alone, at once if it is in the cache."""
    return _kept()[1]


@cache
def _kept() -> tuple[bytes, bytes]:
    path = kept.place("objects", cache_file.name(b"runtime library", made_by=[Path(__file__).parents[1]]))

    def make() -> tuple[bytes, bytes]:
        made = build()
        cache_file.write(path, made.texts, made.code)
        return json.dumps(made.texts).encode(), made.code

    return kept.once(lambda: cache_file.read(path), make)


def build() -> Shared:
    from dplc.machine.object.assemble import assemble, module
    from dplc.machine.runtime import library

    texts = library.interface()
    whole = library.library(" ".join(f"@{symbol}" for symbol in texts))
    return Shared(texts, assemble(module(OWN.sub(r"\1dso_local ", whole))))
