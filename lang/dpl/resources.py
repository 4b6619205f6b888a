"""Where the project's own files are, in a checkout and installed, and where it may keep what it computed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
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


def write_cache(path: Path, data: bytes) -> None:
    """Put a file into the cache in one piece: nobody ever reads half of it.  Without a place to write, do nothing."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def prune(folder: Path, most: int) -> None:
    """Removes the entries used longest ago, until the others take no more than `most` bytes."""
    entries = []
    for file in _files(folder):
        try:
            status = file.stat()
        except OSError:  # somebody else removed it
            continue
        entries.append((status.st_mtime, status.st_size, file))
    total = sum(size for _, size, _ in entries)
    for _, size, file in sorted(entries, key=lambda entry: entry[0]):
        if total <= most:
            break
        file.unlink(missing_ok=True)
        total -= size


def _files(folder: Path) -> Iterable[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
