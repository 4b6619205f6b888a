"""Files that the command writes for its user: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from dpl.diagnostics import DplError


def put(out: Path, data: bytes, executable: bool = False) -> None:
    """Write a file atomically: where the disk is full, the one of before stays.  What is there and is no file, as
    `/dev/null` or a pipe, is written to.  Raises DplError if that fails."""
    try:
        if out.exists() and not out.is_file():
            out.write_bytes(data)
        else:
            replace(out.resolve(), data, executable)
    except OSError as failure:
        raise unwritable(out, failure) from failure


def replace(out: Path, data: bytes, executable: bool) -> None:
    """Put another file in the place of one, with its permissions."""
    file = tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.", delete=False)  # noqa: SIM115  (below)
    try:
        with file:
            file.write(data)
        os.chmod(file.name, mode(out) | (0o111 & ~mask() if executable else 0))
        os.replace(file.name, out)
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        with suppress(OSError):
            os.unlink(file.name)
        raise


def mode(out: Path) -> int:
    return out.stat().st_mode & 0o7777 if out.exists() else 0o666 & ~mask()


def mask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def unwritable(out: Path, failure: OSError) -> DplError:
    """E0572, with the system's reason."""
    return DplError.at("E0572", f"cannot write {out}: {failure.strerror or failure}")
