"""Keeps the Python bytecode of imported modules in DPL's own cache.

If Python must not write bytecode beside its sources, as in containers, it compiles all sources at every start, which
takes longer than compiling a small program.  An entry is checked like all others, and made again if damaged.
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
    """Python's own loader, except that bytecode is read from and written to the cache."""

    def get_data(self, path: str) -> bytes:
        if not path.endswith(tuple(BYTECODE_SUFFIXES)):
            return super().get_data(path)
        data = entries.read(path)
        if data is None:
            raise FileNotFoundError(path)
        return data

    def set_data(self, path: str, data: Any, *, _mode: int = 0) -> None:
        entries.write(path, bytes(data))


def keep() -> None:
    loaders = (
        (ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, SOURCE_SUFFIXES), (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )  # fmt: skip
    sys.path_hooks.insert(0, FileFinder.path_hook(*loaders))
    sys.path_importer_cache.clear()
    sys.pycache_prefix = os.path.join(entries.folder(), "bytecode")
    sys.dont_write_bytecode = False
