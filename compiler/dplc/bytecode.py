"""Keeps the Python bytecode of imported modules in DPL's own cache.

If Python must not write bytecode beside its sources, as in containers, it compiles all sources at every start that were
not compiled when they were installed, which takes longer than compiling a small program.  An entry is checked like all
others, and made again if damaged.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)

from dpl.system import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Loader(SourceFileLoader):
    """Python's own loader, except that bytecode is written to the cache, and read from there first."""

    def get_data(self, path: str) -> bytes:
        kept = entries.read(entry(path)) if path.endswith(tuple(BYTECODE_SUFFIXES)) else None
        return super().get_data(path) if kept is None else kept

    def set_data(self, path: str, data: Any, *, _mode: int = 0) -> None:
        entries.write(entry(path), bytes(data))


def entry(path: str) -> str:
    return os.path.join(entries.folder(), "bytecode", path.lstrip(os.sep))


def keep() -> None:
    loaders = (
        (ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )  # fmt: skip
    sys.path_hooks.insert(0, FileFinder.path_hook(*loaders))
    sys.path_importer_cache.clear()
    sys.dont_write_bytecode = False
