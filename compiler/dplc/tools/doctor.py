"""`dpl doctor`: what a bug report needs: versions, libraries, the linker, devices, the cache, extras, a self-test."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from dpl.node import node

from dplc import VERSION
from dplc.tools.version import installed

GOOD, MISSING, BROKEN = "ok", "--", "BROKEN"
EXTRAS = {
    "lsp": ("pygls", "the language server"),
    "jupyter": ("ipykernel", "notebooks"),
    "plot": ("matplotlib", "pictures of costs"),
    "cross": ("ziglang", "executables for other systems"),
}
LARGE = 1 << 20  # bytes that the cache must take
PATIENCE = 60  # seconds for a self-test
PROGRAM = "let f (x : float) = tanh x * x\ndo print (f 0.5)\ndo print (grad f 0.5)\n"


@node
class Finding:
    state: str
    name: str
    text: str


def examine(as_json: bool) -> int:
    """Print a line for each finding.  Returns 1 if something is broken."""
    broken = False
    for finding in findings():
        broken |= finding.state == BROKEN
        if as_json:
            print(json.dumps({"state": finding.state, "name": finding.name, "text": finding.text}), flush=True)
        else:
            print(f"{finding.state:>6}  {finding.name:10} {finding.text}", flush=True)
    return int(broken)


def findings() -> Iterator[Finding]:
    yield Finding(GOOD, "dpl", f"{VERSION}, in {Path(__file__).resolve().parents[2]}")
    yield Finding(GOOD, "system", f"{platform.platform()}, {os.cpu_count()} processors")
    yield Finding(GOOD, "python", f"{sys.version.split()[0]}, {sys.executable}")
    for check in (llvm, numpy, lapack, linker, zig, mpi, cuda, cache):
        yield guarded(check)
    for extra, (package, what) in EXTRAS.items():
        yield extra_of(extra, package, what)
    yield from self_tests()


def guarded(check: Callable[[], Finding]) -> Finding:
    """The finding of a check; if the check itself fails, that is one."""
    try:
        return check()
    except Exception as failure:
        return Finding(BROKEN, check.__name__, f"{type(failure).__name__}: {str(failure).splitlines()[0]}")


def llvm() -> Finding:
    from dplc.machine.llvm.target import llvm_version

    return Finding(GOOD, "llvm", f"{llvm_version()}, llvmlite {installed('llvmlite')}")


def numpy() -> Finding:
    if not find_spec("numpy"):
        return Finding(BROKEN, "numpy", "not installed")
    return Finding(GOOD, "numpy", installed("numpy"))


def lapack() -> Finding:
    from dpl.system import lapack

    found = lapack.find()
    if found is None:
        return Finding(MISSING, "lapack", "none: the library's own algorithms factorise matrices")
    return Finding(GOOD, "lapack", f"found, with integers of {found.width} bytes")


def linker() -> Finding:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        return Finding(MISSING, "linker", "no C compiler: `dpl build` needs one, or the extra `cross`")
    return Finding(GOOD, "linker", found)


def zig() -> Finding:
    found = shutil.which("zig") or ("the package ziglang" if find_spec("ziglang") else None)
    return Finding(GOOD if found else MISSING, "zig", found or "none: `dpl build --target` needs it")


def mpi() -> Finding:
    found = shutil.which("mpirun") or shutil.which("mpiexec")
    return Finding(GOOD if found else MISSING, "mpi", found or "none: programs run on one machine")


def cuda() -> Finding:
    """The driver and its devices, asked as programs ask it."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding(MISSING, "cuda", "no driver: loops run on the processor")
    count, version = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return Finding(MISSING, "cuda", "a driver, but no device that it can use")
    driver.cuDriverGetVersion(ctypes.byref(version))
    names = [device_name(driver, i) for i in range(count.value)]
    major, minor = version.value // 1000, version.value % 1000 // 10
    return Finding(GOOD, "cuda", f"driver {major}.{minor}; {', '.join(names) or 'no device'}")


def device_name(driver: ctypes.CDLL, number: int) -> str:
    text = ctypes.create_string_buffer(100)
    driver.cuDeviceGetName(text, len(text), number)
    return text.value.decode("utf-8", "replace")


def cache() -> Finding:
    from dpl.system import kept
    from dpl.system.entries import OURS, usable

    folder = kept.cache_dir()
    if folder.exists() and not usable(str(folder)):
        return Finding(BROKEN, "cache", f"{folder}: not yours alone, so it is not used (chmod 700, or set DPL_CACHE)")
    try:
        folder.mkdir(OURS, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(LARGE))  # an entry of some size: a disk may be full
            file.flush()
    except OSError as failure:
        return Finding(BROKEN, "cache", f"{folder} cannot be written: {failure.strerror}")
    return Finding(GOOD, "cache", f"{folder}, {kept.size() / 1e6:.1f} MB")


def extra_of(extra: str, package: str, what: str) -> Finding:
    if find_spec(package):
        return Finding(GOOD, extra, f"{package} {installed(package)}: {what}")
    return Finding(MISSING, extra, f"{what}:  pip install 'dpl-lang[{extra}]'")


def self_tests() -> Iterator[Finding]:
    """A program with derivatives, in the interpreter and as native code: they must agree."""
    outputs = {}
    for engine in ("interp", "native"):
        begin = time.perf_counter()
        outputs[engine], failure = output_of(engine)
        seconds = time.perf_counter() - begin
        state, text = (BROKEN, failure) if failure else (GOOD, f"a program with gradients, in {seconds:.2f} s")
        yield Finding(state, engine, text)
    if all(outputs.values()) and outputs["interp"] != outputs["native"]:
        yield Finding(BROKEN, "agreement", "the interpreter and native code give different results")


def output_of(engine: str) -> tuple[str, str]:
    """What the program prints in a process of its own, and what is wrong."""
    import subprocess

    with tempfile.TemporaryDirectory(prefix="dpl-doctor-") as folder:
        file = Path(folder, "test.dp")
        file.write_text(PROGRAM, encoding="utf-8")
        command = [sys.executable, "-m", "dplc.cli", "run", "--engine", engine, "--no-cache", str(file)]
        environment = {**os.environ, "DPL_OPTIMISE": "never", "PYTHONPATH": os.pathsep.join(sys.path)}
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
        except subprocess.TimeoutExpired:
            return "", f"a program with gradients did not end within {PATIENCE} seconds"
        except OSError as failure:
            return "", str(failure)
    if run.returncode:
        return "", (run.stderr.strip().splitlines() or [f"exit code {run.returncode}"])[-1]
    return run.stdout, ""
