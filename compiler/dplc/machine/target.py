"""The machine that code is made for: this one."""

from __future__ import annotations

import platform
from functools import cache

import llvmlite.binding as llvm


@cache
def start() -> None:
    """LLVM's native back end, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def features() -> llvm.FeatureMap:
    return llvm.get_host_cpu_features()


def host(effort: int = 2) -> llvm.TargetMachine:
    """`effort` 0 chooses instructions fast, 2 well.  Position independent, as code in the JIT must be."""
    start()
    cpu, extras = llvm.get_host_cpu_name(), features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=extras, opt=effort, reloc="pic", codemodel="default", jit=True
    )


def describe() -> str:
    """What object code depends on, besides the program."""
    version = ".".join(str(part) for part in llvm.llvm_version_info)
    return f"{platform.machine()} {llvm.get_host_cpu_name()} {features().flatten()} llvm {version}"
