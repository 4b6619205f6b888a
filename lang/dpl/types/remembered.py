"""User modules on disk: what was inferred of one that has not changed since.

An entry is named by the module's text and name, by those of all that it imports, and by this version of DPL.  The main
module is not kept: it changes most, and what is compiled of it is kept elsewhere.  A damaged entry only costs time.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from hashlib import blake2b

from dpl import kept
from dpl.core import term
from dpl.diagnostics import Diagnostic
from dpl.syntax.load import MAIN, Module
from dpl.types.declarations import Item
from dpl.types.library import version
from dpl.types.state.env import Exports

MOST = 64 << 20  # bytes of all entries


@dataclass(slots=True)
class Remembered:
    """A module's core, what it offers and declares, which names must not be generalised over, and its warnings."""

    items: list[Item]
    exports: Exports
    datas: dict[str, term.Data]
    loud: set[str]
    warnings: list[Diagnostic]


def key(module: Module, imported: list[str]) -> str:
    """What names a module's entry; `imported` are the keys of the modules it imports."""
    digest = blake2b(digest_size=16)
    for part in (version(), module.name, module.source.name, module.source.text, *imported):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


def recall(module: Module, name: str) -> Remembered | None:
    return None if module.name == MAIN else kept.unpickled(kept.place("modules", name))


def remember(module: Module, name: str, made: Remembered) -> None:
    if module.name != MAIN:
        place = kept.place("modules", name)
        kept.write(place, pickle.dumps(made, 5))
        kept.prune(place.parent, MOST)
