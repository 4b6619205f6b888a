"""The paths of the project's own files, in a checkout or installed, and of the sources of the checker."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """A folder of data: inside the package if installed, otherwise beside `lang/`."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent.parent / name


def grammar() -> Path:
    """The folder of the grammar."""
    return _folder("grammar")


def stdlib() -> Path:
    """The folder of the standard library."""
    return _folder("stdlib")


def names() -> Path:
    """The table of names in other languages."""
    return _PACKAGE / "names.toml"


def codes() -> Path:
    """The folder with a page for each message code."""
    return _PACKAGE / "codes"


def checker() -> list[str]:
    """The paths of the source files that affect the types of a program."""
    found: list[str] = []
    for folder, inner, files in os.walk(_PACKAGE):
        inner[:] = [name for name in inner if name not in ("eval", "examples", "__pycache__")]
        found += [os.path.join(folder, name) for name in files if name.endswith(".py")]
    return sorted(found)
