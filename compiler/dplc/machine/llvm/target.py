"""Target machines: this one, and those that `dpl build --target` knows."""

from __future__ import annotations

import os
from functools import cache

from dpl.node import node

from dplc.machine.llvm import api

HOST_SYSTEM = "linux"  # the only system with a JIT
PORTABLE = {"x86_64": "x86-64-v3", "aarch64": "generic", "wasm32": "generic"}  # as in the last ten years
NATIVE = "native"
MASKED = "!8"  # metadata of loops: vectors are masked, where the machine can do that


@node
class Target:
    """`name` is that of the command line: architecture, system and, for Linux with musl, `musl`."""

    name: str
    triple: str
    cpu: str
    features: str = ""
    jit: bool = False

    @property
    def arch(self) -> str:
        """The architecture, by LLVM's name for it."""
        return self.name.partition("-")[0]

    @property
    def system(self) -> str:
        """The name in `runtime.library.SYSTEMS`."""
        return "wasi" if self.arch == "wasm32" else "musl" if self.musl else self.name.split("-")[1]

    @property
    def musl(self) -> bool:
        return self.name.endswith("-musl")

    @property
    def flags(self) -> dict[str, bool]:
        """The CPU features that decide how wide vectors are, by LLVM's names."""
        if self.cpu in (PORTABLE["x86_64"],):
            return {"avx": True, "fma": True}
        if self.features:
            return {word[1:]: word[0] == "+" for word in self.features.split(",")}
        return {"neon": self.arch == "aarch64"}

    @property
    def head(self) -> str:
        """What a module says of the machine."""
        masks = "true" if self.flags.get("avx") else "false"  # else a masked load is a branch for each number
        layout = self.machine(0).layout  # that of all levels; a quick version needs no other machine
        return (f'target datalayout = "{layout}"\ntarget triple = "{self.triple}"\n'
                f'{MASKED} = !{{!"llvm.loop.vectorize.predicate.enable", i1 {masks}}}\n')  # fmt: skip

    @cache  # noqa: B019 (there are few targets)
    def machine(self, effort: int = 2) -> api.Machine:
        """LLVM's code generator.  `effort` 0 is fast, 2 optimises.  The code is position independent, as the JIT needs
        it.  It is kept: to make one that knows all features of a processor takes 2 ms."""
        start_all() if not self.jit else start()
        return api.Machine(self.triple, self.cpu, self.features, effort, jit=self.jit)


TRIPLES = {
    "x86_64-linux": "x86_64-unknown-linux-gnu",
    "x86_64-linux-musl": "x86_64-unknown-linux-musl",
    "aarch64-linux": "aarch64-unknown-linux-gnu",
    "aarch64-linux-musl": "aarch64-unknown-linux-musl",
    "x86_64-windows": "x86_64-w64-windows-gnu",
    "x86_64-macos": "x86_64-apple-macosx11.0.0",
    "aarch64-macos": "arm64-apple-macosx11.0.0",
    "wasm32": "wasm32-unknown-wasi",
}


@cache
def start() -> None:
    """Initialises LLVM's native back end, once."""
    api.call("InitializeNativeTarget")
    api.call("InitializeNativeAsmPrinter")


@cache
def start_all() -> None:
    """Initialises the back ends for other machines, too."""
    for part in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
        api.call(f"InitializeAll{part}")


@cache
def here() -> Target:
    """This machine, for code that is run at once."""
    start()
    name = f"{arch()}-{HOST_SYSTEM}"
    return Target(name, api.default_triple(), api.host_name(), api.host_features(), jit=True)


@cache
def features() -> dict[str, bool]:
    """What this processor has, by LLVM's names."""
    return here().flags


def arch() -> str:
    """This machine's architecture, by LLVM's name for it."""
    machine = os.uname().machine
    return "aarch64" if machine == "arm64" else machine


def to_build(name: str | None, cpu: str | None) -> Target:
    """The target of that name (None: like this machine), for a CPU: `native` is this one, None any of its
    architecture."""
    name = name or f"{arch()}-{HOST_SYSTEM}"
    triple = TRIPLES[name]
    if cpu == NATIVE:
        start()
        return Target(name, triple, api.host_name(), api.host_features())
    return Target(name, triple, cpu or PORTABLE[name.partition("-")[0]])


def host() -> api.Machine:
    """The code generator for this machine."""
    return here().machine()


def describe() -> str:
    """Everything that object code depends on besides the program."""
    return f"{os.uname().machine} {api.host_name()} {api.host_features()} llvm {llvm_version()}"


def llvm_version() -> str:
    """The version of LLVM as text, for keys of caches."""
    return ".".join(str(part) for part in api.version())
