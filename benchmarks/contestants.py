"""How the programs that are compared are made and run: each as a process of its own, with one thread."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
COMPILER = [sys.executable, "-m", "dplc.cli"]
DPL = [*COMPILER, "run"]
C_FLAGS = ["-O3", "-march=native", "-ffast-math"]


def _blas() -> dict[str, str]:
    """Where NumPy's library of matrix products lies, and the kernels for this processor: it knows no new ones."""
    numpy = importlib.util.find_spec("numpy")
    if numpy is None or numpy.origin is None:
        return {}
    libraries = (Path(numpy.origin).parent.parent / "numpy.libs").glob("libscipy_openblas*")
    found = dict(zip(["BLAS"], map(str, libraries), strict=False))
    processor = Path("/proc/cpuinfo")
    if processor.exists() and "avx512f" in processor.read_text():
        found["OPENBLAS_CORETYPE"] = "SkylakeX"
    return found


ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "lang", ROOT / "compiler", HERE))),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "DPL_THREADS": "1",
    **_blas(),
}


def c_program(source: Path, folder: Path, flags: tuple[str, ...] = ()) -> str | None:
    """The path of a program in C, compiled into `folder`; None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    binary = str(folder / f"{source.stem}-c")
    subprocess.run([compiler, *C_FLAGS, *flags, str(source), "-lm", "-ldl", "-o", binary], check=True)
    return binary


def dpl_program(source: Path, folder: Path) -> str:
    """The path of a program in DPL, compiled for this processor, with its symbols."""
    binary = str(folder / source.stem)
    command = [*COMPILER, "build", "-g", "--cpu", "native", str(source), "-o", binary]
    subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    return binary


def run(command: list[str], folder: Path) -> tuple[list[list[float]], float]:
    """The numbers it prints, by lines, and the most memory it used, in MB; it may leave files in the folder."""
    most = 0.0
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, _peak(process.pid))
            time.sleep(0.002)
        assert process.stdout is not None
        printed = process.stdout.read()
    if process.returncode:
        raise ChildProcessError(f"{' '.join(command)}: exit code {process.returncode}")
    return [[float(word) for word in line.split()] for line in printed.splitlines()], most


def _peak(pid: int) -> float:
    """The most memory that a running process had so far.  (What `wait4` reports begins with that of its parent.)"""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), default=0.0)
