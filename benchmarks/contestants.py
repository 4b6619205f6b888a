"""How the programs that are compared are run: each as a process of its own, with one thread."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join((str(ROOT / "lang"), str(ROOT / "compiler"))),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
DPL = [sys.executable, "-m", "dplc.cli", "run"]
C_FLAGS = ["-O3", "-march=native", "-ffast-math"]


def c_program(source: Path, folder: Path) -> str | None:
    """The path of a program in C, compiled into `folder`; None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    binary = str(folder / source.stem)
    subprocess.run([compiler, *C_FLAGS, str(source), "-lm", "-o", binary], check=True)
    return binary
