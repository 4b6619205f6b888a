"""LLVM text -> PTX, the text that the driver of NVIDIA's GPUs compiles.

Nothing allows LLVM to fuse a multiplication and an addition.  NVPTX writes `mul.rn` and `add.rn`, which the assembler
does not fuse either: results have the bits of the host's.
"""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from dplc.machine.llvm.target import MASKED, start_all
from dplc.machine.object.assemble import parsed, run_passes

TRIPLE = "nvptx64-nvidia-cuda"
PORTABLE = 80  # every GPU since 2020
KNOWN = (70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121)


@cache
def machine(sm: int) -> llvm.TargetMachine:
    """LLVM's code generator for a GPU of this compute capability."""
    start_all()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=f"sm_{sm}", opt=3, reloc="default", codemodel="default"
    )


def ptx(text: str, sm: int = PORTABLE) -> str:
    """The PTX of a module."""
    generator = machine(sm)
    vectors = f'{MASKED} = !{{!"llvm.loop.vectorize.predicate.enable", i1 false}}'  # a thread has none
    head = f'target datalayout = "{generator.target_data}"\ntarget triple = "{TRIPLE}"\n{vectors}\n'
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = False
    options.loop_vectorization = options.slp_vectorization = False
    with parsed(head + text) as module:
        run_passes(module, generator, options)
        return generator.emit_assembly(module)
