"""Compiled programs on disk, so that a program that ran before starts at once.

An entry is one file, named by a hash of the program's path and text, of DPL itself and of this machine:

    magic | SHA-256 of the rest | length of the header | header (JSON) | object code

The header lists the files that the program was made of, each with the hash of its text, and the places where the
program may fail.  An entry that is damaged, or whose files have changed, is as good as none.  Entries are written in
one piece, whoever else may be writing; the least recently used go when there are too many.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from dpl import resources
from dpl.source import Source

from dplc.machine import target
from dplc.machine.jit import Compiled

MAGIC = b"DPL object 1\n"
MOST = 512 << 20  # bytes of all entries


def find(path: Path) -> Compiled | None:
    """The object code of a program, if its files are still what they were."""
    try:
        entry = _entry(path, path.read_bytes())
        data = entry.read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    if data[: len(MAGIC)] != MAGIC or sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        return None
    end = start + 8 + int.from_bytes(data[start : start + 8], "little")
    header = json.loads(data[start + 8 : end])
    if any(_digest(Path(file)) != digest for file, digest in header["files"]):
        return None
    with suppress(OSError):  # not ours to touch: it is found all the same
        os.utime(entry)
    return Compiled(data[end:], header["sites"])


def store(path: Path, sources: Sequence[Source], compiled: Compiled) -> None:
    """Keeps the object code of the program at `path`, which was made of these texts."""
    files = [[str(s.path.resolve()), sha256(s.text.encode()).hexdigest()] for s in sources if s.path]
    header = json.dumps({"files": files, "sites": compiled.sites}).encode()
    rest = len(header).to_bytes(8, "little") + header + compiled.code
    try:
        entry = _entry(path, path.read_bytes())
    except OSError:
        return
    resources.write_cache(entry, MAGIC + sha256(rest).digest() + rest)
    prune(entry.parent)


def prune(folder: Path, most: int = MOST) -> None:
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


def _entry(path: Path, text: bytes) -> Path:
    """Where a program's object code is kept; the path is part of its messages."""
    key = sha256()
    for part in (os.fsencode(path), os.fsencode(path.resolve()), text, target.describe().encode(), itself()):
        key.update(len(part).to_bytes(8, "little") + part)
    return resources.cache_dir() / "objects" / key.hexdigest()


def itself() -> bytes:
    """What stands for this version of DPL: names, sizes and times of its own files."""
    here = Path(__file__).resolve().parent.parent
    marks = []
    for root in (here, Path(resources.__file__).parent, resources.stdlib(), resources.grammar()):
        for folder, _, names in os.walk(root):
            for name in names:
                if name.endswith((".py", ".dp", ".lark", ".rt")):
                    status = os.stat(os.path.join(folder, name))
                    marks.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(marks)).encode()


def _digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""

