"""A cache on disk of the inferred types of user modules.

The key of an entry is a hash of the module's name and text, the keys of its imports, and the version of the library
and checker.  The main module is not cached: it changes most, and its compiled code is cached elsewhere.  A damaged
entry costs time, nothing else.
"""

from __future__ import annotations

from dpl import host, pickled
from dpl.core import term
from dpl.diagnostics import Diagnostic
from dpl.digest import blake2b
from dpl.node import record
from dpl.syntax.load import MAIN, Module
from dpl.types.declarations import Item
from dpl.types.library import version
from dpl.types.state.env import Exports

MOST = 64 << 20  # most bytes of all entries together


@record
class Remembered:
    """The result for one module: core, exports, new data types, names that block generalisation, and warnings."""

    items: list[Item]
    exports: Exports
    datas: dict[str, term.Data]
    loud: set[str]
    warnings: list[Diagnostic]


def key(module: Module, imported: list[str]) -> str:
    """The key of a module's cache entry; `imported` are the keys of the modules it imports."""
    digest = blake2b(digest_size=16)
    for part in (version(), module.name, module.source.name, module.source.text, *imported):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()


def recall(module: Module, name: str) -> Remembered | None:
    """The kept result, if there is one.  The main module is never kept."""
    return None if module.name == MAIN else host.current.cache.unpickled(host.current.cache.place("modules", name))


def remember(module: Module, name: str, made: Remembered) -> None:
    """Keeps a module's result, and removes the oldest entries if there are too many."""
    if module.name != MAIN:
        kept = host.current.cache
        place = kept.place("modules", name)
        kept.write(place, pickled.dumps(made, 5))
        kept.prune(place.parent, MOST)
