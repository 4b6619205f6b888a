"""Where the project's own files are, in a checkout and installed, and where it may keep what it computed."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """A folder of data: inside the package when installed, else beside `lang/`."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent.parent / name


def grammar() -> Path:
    return _folder("grammar")


def stdlib() -> Path:
    return _folder("stdlib")


def names() -> Path:
    """What other languages call things."""
    return _PACKAGE / "names.toml"


def codes() -> Path:
    """A page for each code of a message."""
    return _PACKAGE / "codes"


def cache_dir() -> Path:
    """The folder for cached work; it need not exist, nor be writable."""
    if chosen := os.environ.get("DPL_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "dpl"
