"""`dpl --version`.  It asks no package for its version, as importing them takes longer than all else."""

from __future__ import annotations

import os
import sys

from dplc import VERSION


def version() -> str:
    """The line that `dpl --version` prints."""
    parts = f"llvmlite {installed('llvmlite')}, numpy {installed('numpy')}, python {sys.version.split()[0]}"
    return f"dpl {VERSION} ({parts})"


def installed(package: str) -> str:
    """The version in the name of the folder with a package's metadata, as `llvmlite-0.50.0.dist-info`."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith(f"{package}-") and name.endswith((".dist-info", ".egg-info")):
                return name.split("-")[1].removesuffix(".dist").removesuffix(".egg")
    return "?"
