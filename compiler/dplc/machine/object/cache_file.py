"""Files of the cache that hold object code and a header.

length of the header | header (JSON) | code
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from dpl import kept, resources

from dplc.machine.llvm import target


def read(path: Path) -> tuple[bytes, bytes] | None:
    """The header as JSON text, and the code."""
    data = kept.read(path)
    if data is None:
        return None
    end = 8 + int.from_bytes(data[:8], "little")
    return data[8:end], data[end:]


def write(path: Path, header: Any, code: bytes) -> None:
    text = json.dumps(header).encode()
    kept.write(path, len(text).to_bytes(8, "little") + text + code)


def name(*parts: bytes, made_by: Sequence[Path] = ()) -> str:
    """The name of the file for these parts, on this machine.  It changes with DPL itself, or, if given, only with the
    folders `made_by`."""
    compiler = Path(__file__).resolve().parents[2]
    folders = made_by or (compiler, Path(resources.__file__).parent, resources.stdlib(), resources.grammar())
    key = sha256()
    for part in (*parts, target.describe().encode(), version(folders)):
        key.update(len(part).to_bytes(8, "little") + part)
    return key.hexdigest()


def version(folders: Sequence[Path]) -> bytes:
    """A fingerprint of the source files in these folders: their names, sizes and times."""
    marks = []
    for root in folders:
        for folder, _, names in os.walk(root):
            for file in names:
                if file.endswith((".py", ".dp", ".lark", ".rt")):
                    status = os.stat(os.path.join(folder, file))
                    marks.append(f"{file} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(marks)).encode()
