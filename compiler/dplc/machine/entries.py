"""Files of the cache that are whole or not there.

    magic | SHA-256 of the rest | length of the header | header (JSON) | code

An entry that is damaged is as good as none.  Entries are written in one piece, whoever else may be writing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from dpl import resources

from dplc.machine import target

MAGIC = b"DPL object 1\n"


def read(path: Path) -> tuple[bytes, bytes] | None:
    """The header, still JSON, and the code."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + 32
    if data[: len(MAGIC)] != MAGIC or sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        return None
    end = start + 8 + int.from_bytes(data[start : start + 8], "little")
    return data[start + 8 : end], data[end:]


def write(path: Path, header: Any, code: bytes) -> None:
    text = json.dumps(header).encode()
    rest = len(text).to_bytes(8, "little") + text + code
    resources.write_cache(path, MAGIC + sha256(rest).digest() + rest)


def name(*parts: bytes, made_by: Sequence[Path] = ()) -> str:
    """Of the entry for these parts, on this machine; `made_by` these folders of DPL, if not by all."""
    here = Path(__file__).resolve().parent
    folders = made_by or (here.parent, Path(resources.__file__).parent, resources.stdlib(), resources.grammar())
    key = sha256()
    for part in (*parts, target.describe().encode(), version(folders)):
        key.update(len(part).to_bytes(8, "little") + part)
    return key.hexdigest()


def version(folders: Sequence[Path]) -> bytes:
    """What stands for this version of DPL: names, sizes and times of its own files."""
    marks = []
    for root in folders:
        for folder, _, names in os.walk(root):
            for file in names:
                if file.endswith((".py", ".dp", ".lark", ".rt")):
                    status = os.stat(os.path.join(folder, file))
                    marks.append(f"{file} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(marks)).encode()
