"""A pause in a loop that waits: a hint for the processor, by an intrinsic function of LLVM."""

from __future__ import annotations

SYMBOL = "rt.pause"
HINTS = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}


def definition(arch: str) -> str:
    """The text of the function; on other architectures it does nothing."""
    return f"define internal void @{SYMBOL}() alwaysinline {{\n  {HINTS.get(arch, '')}\n  ret void\n}}"
