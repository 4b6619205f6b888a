"""Compiled programs on disk, so that a program that ran before starts at once.

A cache file (`cache_file.py`) is named by a hash of the program's path and text, of DPL itself and of this machine.
Its header lists the files that the program was made of, each with the hash of its text, and the sites where the program
may fail.  If one of these files has changed, it is ignored.  The least recently used are deleted when there are too
many.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from dpl.source import Source
from dpl.system import kept

from dplc.machine.object import cache_file
from dplc.machine.object.compiled import Compiled

MOST = 512 << 20  # bytes of all files


def find(path: Path) -> Compiled | None:
    """The object code of a program, if none of its files has changed."""
    try:
        if not path.is_file():  # a pipe can be read only once
            return None
        place = _place(path, path.read_bytes())
    except OSError:
        return None
    if (entry := cache_file.read(place)) is None:
        return None
    header = json.loads(entry[0])
    if not unchanged(header["files"]):
        return None
    with suppress(OSError):  # a read-only cache is used all the same
        os.utime(place)
    return Compiled(entry[1], header["sites"], b64decode(header["warnings"]))


def unchanged(files: Sequence[Sequence[str]]) -> bool:
    """True if files still have the texts from which `digests` were computed."""
    return all(digest(Path(file)) == known for file, known in files)


def digests(sources: Sequence[Source]) -> list[list[str]]:
    """The path of each source with the hash of its text."""
    return [[str(s.path.resolve()), sha256(s.text.encode()).hexdigest()] for s in sources if s.path]


def store(path: Path, sources: Sequence[Source], compiled: Compiled) -> None:
    """Keeps the object code of the program at `path`, which was made of these sources."""
    try:
        place = _place(path, path.read_bytes())
    except OSError:
        return
    warnings = b64encode(compiled.warnings).decode()
    cache_file.write(place, {"files": digests(sources), "sites": compiled.sites, "warnings": warnings}, compiled.code)
    kept.prune(place.parent, MOST)


def _place(path: Path, text: bytes) -> Path:
    """The cache file of a program; the path counts, as it is part of the program's messages."""
    return kept.place("objects", cache_file.name(os.fsencode(path), os.fsencode(path.resolve()), text))


def digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
