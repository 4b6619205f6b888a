"""Entries that travel with an installation, so that its first run need not make them.

They are made when DPL is installed from a checkout, or when a wheel is built (`dplc.tools.ship`), and lie inside the
package, whose code is trusted anyway.  The name of an entry has a hash of the contents of all that it was made from, so
one that does not fit is not found.  It is checked for damage like those of the cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import dpl
from dpl.system.entries import checked, checksum, sealed

FOLDER = Path(dpl.__file__).parent / "shipped"


def find(name: str, sources: Iterable[Path], *more: str) -> bytes | None:
    """The contents of an entry that was made from these files and texts; None if it is missing or damaged."""
    try:
        if next(FOLDER.glob(f"{name}-*"), None) is None:
            return None
        return checked(place(name, sources, more).read_bytes())
    except OSError:
        return None


def write(name: str, sources: Iterable[Path], more: Iterable[str], data: bytes) -> None:
    """Write an entry, instead of those made from other sources.  Raises OSError."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob(f"{name}-*"):
        old.unlink(missing_ok=True)
    temporary = FOLDER / f"{os.getpid()}"
    temporary.write_bytes(sealed(data))
    os.replace(temporary, place(name, sources, more))


def place(name: str, sources: Iterable[Path], more: Iterable[str]) -> Path:
    parts = sorted((path.name.encode(), path.read_bytes()) for path in sources)
    parts += [(b"", text.encode()) for text in more]
    whole = b"".join(len(part).to_bytes(8, "little") + part for pair in parts for part in pair)
    return FOLDER / f"{name}-{checksum(whole).hex()[:32]}"
