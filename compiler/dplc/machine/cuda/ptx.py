"""LLVM text -> PTX, the text that the driver of NVIDIA's GPUs compiles.

Nothing allows LLVM to fuse a multiplication and an addition.  NVPTX writes `mul.rn` and `add.rn`, which the assembler
does not fuse either: results have the bits of the host's.
"""

from __future__ import annotations

from functools import cache

from dplc.machine.llvm import api
from dplc.machine.llvm.target import MASKED, start_all

TRIPLE = "nvptx64-nvidia-cuda"
PORTABLE = 80  # every GPU since 2020
KNOWN = (70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121)


@cache
def machine(sm: int) -> api.Machine:
    """LLVM's code generator for a GPU of this compute capability."""
    start_all()
    return api.Machine(TRIPLE, f"sm_{sm}", effort=3, relocation="default")


def ptx(text: str, sm: int = PORTABLE) -> str:
    """The PTX of a module."""
    generator = machine(sm)
    vectors = f'{MASKED} = !{{!"llvm.loop.vectorize.predicate.enable", i1 false}}'  # a thread has none
    head = f'target datalayout = "{generator.layout}"\ntarget triple = "{TRIPLE}"\n{vectors}\n'
    with api.parsed(head + text) as module:
        api.optimise(module, generator, 3, vectorise=False)
        return generator.emit_assembly(module)
