"""NVIDIA's assembler takes all kernels, for several generations of GPUs; those of some programs keep their registers.

`ptxas` is in the extra `dev`, on Linux; without it, these tests are skipped.  `registers.txt` has a line for each
kernel of `kernels.flat`, parts of programs as the emitter gets them: its function, its geometry, the registers of a
thread, and the bytes that it spills; `pytest --bless` rewrites it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT
from dpl.diagnostics import DplError
from dpl.source import Source
from dplc.flat import term as f
from dplc.flat.parse import parse
from dplc.machine.cuda.kernels import Kernels, outermost
from dplc.machine.cuda.ptx import ptx
from dplc.passes import NeedsInterpreter
from dplc.pipeline import Context, compile_to
from dplc.stack import on_large_stack

HERE = Path(__file__).parent
REGISTERS = HERE / "registers.txt"
GENERATIONS = (75, 80, 90, 100, 120)
USED = re.compile(r"entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", re.S)
SLACK = 0.25  # of registers and spilled bytes, as assemblers differ
PROGRAMS = sorted((HERE / "programs").glob("*.dp"))
OTHERS = [path for folder in ("examples", "tests/examples/programs", "tests/agree/programs", "tests/agree/gradients")
          for path in sorted((ROOT / folder).glob("*.dp"))]  # fmt: skip


def assembler() -> Path:
    for name in ("nvidia.cuda_nvcc", "nvidia.cu13"):
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            continue
        for folder in (found and found.submodule_search_locations) or ():
            if (path := Path(folder, "bin", "ptxas")).exists():
                return path
    if tool := shutil.which("ptxas"):
        return Path(tool)
    pytest.skip("there is no ptxas (extra dev; Linux)")


def assembled(text: str, sm: int, folder: Path) -> dict[str, tuple[int, int]]:
    """The registers and spilled bytes of each kernel."""
    source = folder / "kernels.ptx"
    source.write_text(text, encoding="utf-8")
    command = [assembler(), f"-arch=sm_{sm}", "-v", source, "-o", folder / "kernels.cubin"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[:2000]
    return {name: (int(registers), int(spilled)) for name, spilled, registers in USED.findall(run.stderr)}


@cache
def kernels_of(path: Path) -> Kernels:
    """The kernels of a program, without any if it cannot be compiled."""

    def make() -> Kernels:
        source = Source(str(path), path.read_text(encoding="utf-8"), path)
        try:
            return made_of(compile_to("reference_counts", source, Context(device=True))[1])
        except (DplError, NeedsInterpreter):
            return Kernels(f.Program())

    return on_large_stack(make)


def made_of(program: f.Program) -> Kernels:
    kernels = Kernels(program)
    for fn, par in outermost(program):
        kernels.of(par, fn)
    return kernels


def lines(folder: Path) -> list[str]:
    """A line for each kernel."""
    program = parse(Source("kernels.flat", (HERE / "kernels.flat").read_text(encoding="utf-8")))
    kernels = Kernels(program)
    found = [(fn.name, kernel) for fn, par in outermost(program) if (kernel := kernels.of(par, fn))]
    made = {kernel.name: (name, kernel.geometry) for name, kernel in found}
    used = assembled(ptx(kernels.text()), 80, folder)
    return [f"{fn:20} {geometry:6} {used[name][0]:4} {used[name][1]:5}" for name, (fn, geometry) in made.items()]


def close(line: str, other: str) -> bool:
    """True for the same kernel with about as many registers and spilled bytes."""
    *name, registers, spilled = line.split()
    *name_too, registers_too, spilled_too = other.split()
    near = [abs(int(a) - int(b)) <= SLACK * int(b) + least
            for a, b, least in ((registers, registers_too, 4), (spilled, spilled_too, 16))]  # fmt: skip
    return name == name_too and all(near)


def test_kernels_keep_their_registers(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    made = lines(tmp_path)
    if pytestconfig.getoption("--bless"):
        REGISTERS.write_text("\n".join(made) + "\n", encoding="utf-8")
    known = REGISTERS.read_text(encoding="utf-8").splitlines()
    assert len(made) == len(known)
    for line, other in zip(made, known, strict=True):
        assert close(line, other), f"{line}, not {other}"


@pytest.mark.parametrize("sm", GENERATIONS)
def test_each_generation_takes_them(sm: int, tmp_path: Path) -> None:
    kernels = kernels_of(HERE / "programs" / "ensemble.dp")
    assert set(kernels.kernels) <= assembled(ptx(kernels.text(), sm), sm, tmp_path).keys()


@pytest.mark.slow
@pytest.mark.parametrize("program", [*PROGRAMS, *OTHERS], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_all_kernels_are_assembled(program: Path, tmp_path: Path) -> None:
    kernels = kernels_of(program)
    for sm in GENERATIONS if kernels.kernels else ():
        assert set(kernels.kernels) <= assembled(ptx(kernels.text(), sm), sm, tmp_path).keys()
