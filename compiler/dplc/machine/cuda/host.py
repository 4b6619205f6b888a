"""flat -> the LLVM text of a program that may use a GPU: its host's code, with the PTX of its kernels as a constant."""

from __future__ import annotations

from dplc.flat import term as f
from dplc.machine.cuda.kernels import Kernels
from dplc.machine.cuda.ptx import ptx
from dplc.machine.emit.module.device import Device
from dplc.machine.emit.module.uploads import Layouts
from dplc.machine.emit.program import emit_program
from dplc.machine.failure.failures import Sites
from dplc.machine.object.assemble import module
from dplc.machine.runtime import shared


def device_of(program: f.Program) -> Device:
    """The kernels of a counted program, made as its host's code asks for them."""
    kernels = Kernels(program)
    layouts = Layouts(program.datas)
    return Device(kernels.of, kernels.product, kernels.convolution, lambda: ptx(kernels.text()), kernels.told, layouts)


def emit_text(program: f.Program) -> tuple[str, Sites]:
    """As `emit/llvm.py`, with kernels."""
    text, sites = emit_program(program, shared.mentioned, versions=True, device=device_of(program))
    return module(text), sites
