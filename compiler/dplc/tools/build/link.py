"""object code -> an executable or a shared library, by `cc`, or by `zig cc` for other targets or without `cc`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from dpl.diagnostics import DplError
from dpl.node import node

from dplc.machine.failure.failures import Sites, missing
from dplc.machine.llvm.target import HOST_SYSTEM, Target, arch
from dplc.tools.files import put

ZIG_NAMES = {
    "x86_64-linux": "x86_64-linux-gnu", "x86_64-linux-musl": "x86_64-linux-musl", "aarch64-linux": "aarch64-linux-gnu",
    "aarch64-linux-musl": "aarch64-linux-musl", "x86_64-windows": "x86_64-windows-gnu", "x86_64-macos": "x86_64-macos",
    "aarch64-macos": "aarch64-macos", "wasm32": "wasm32-wasi",
}  # fmt: skip
UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?([\w.$]+)")
STACK = 1 << 30  # bytes, for targets on which the program runs on the main stack


@node
class Wish:
    """Options of the linker: `shared` makes a library, `static` avoids libraries at run time, `debug` keeps debug
    information; `libraries` are additional libraries."""

    shared: bool = False
    static: bool = False
    debug: bool = False
    libraries: tuple[str, ...] = ()


def link(code: bytes, name: str, target: Target, wish: Wish, sites: Sites) -> bytes:
    """The contents of the linked file, which will be called `name`.  Raises DplError if linking fails."""
    command = linker(target)
    with tempfile.TemporaryDirectory(prefix="dpl-") as folder:
        object_file, made = Path(folder, "program.o"), Path(folder, "program")
        put(object_file, code)
        run = subprocess.run(
            [*command, str(object_file), "-o", str(made), *options(target, wish, name)],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        if run.returncode:
            raise failed(run, sites, command)
        return made.read_bytes()


def linker(target: Target) -> list[str]:
    """The command that links for a target.  Raises DplError if there is none."""
    if own := own_linker(target):
        return own
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc", "-target", ZIG_NAMES[target.name]]
    is_ours = target.name == f"{arch()}-{HOST_SYSTEM}"
    lacking = "there is no C compiler `cc`" if is_ours else "`cc` links for this machine only"
    raise DplError.at(
        "E0571",
        f"nothing links for {target.name}: {lacking}, and the Python package `ziglang` is not installed",
        helps=(f"{'install gcc or clang, or:  ' * is_ours}pip install 'dpl-lang[cross]'",),
    )


def own_linker(target: Target) -> list[str]:
    """The command of this machine's C compiler; empty if there is none or the target is another machine."""
    own = (os.environ.get("CC") or "cc").split()
    return own if target.name == f"{arch()}-{HOST_SYSTEM}" and shutil.which(own[0]) else []


def options(target: Target, wish: Wish, name: str) -> list[str]:
    chosen = [f"-l{library}" for library in wish.libraries]
    if chosen and target.system in ("linux", "musl"):
        chosen.insert(0, "-Wl,--no-as-needed")  # symbols of LAPACK are weak, so the linker sees no need for it
    chosen.append("-lshell32" if target.system == "windows" else "-lm")
    if not wish.debug:
        chosen.append("-s")
    if wish.shared:
        chosen.append("-shared")
        if target.system in ("linux", "musl"):
            chosen.append(f"-Wl,-soname,{name}")
        if target.system == "macos":
            chosen.append(f"-Wl,-install_name,@rpath/{name}")
    elif wish.static and target.system in ("linux", "musl"):
        chosen.append("-static")
    if not wish.shared and target.system in ("windows", "wasi"):
        chosen.append(f"-Wl,--stack,{STACK}" if target.system == "windows" else f"-Wl,-z,stack-size={STACK >> 6}")
    return chosen


def failed(run: subprocess.CompletedProcess[str], sites: Sites, command: Sequence[str]) -> DplError:
    for symbol in UNDEFINED.findall(run.stderr):
        if symbol in sites.externs:
            return missing(symbol, sites)
    lines = [line.strip() for line in run.stderr.splitlines() if line.strip()]
    why = lines[-1] if lines else f"it ended with exit code {run.returncode}, and said nothing"
    return DplError.at("E0571", f"`{' '.join(command)}` could not link the program: {why}")
