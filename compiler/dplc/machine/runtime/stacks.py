"""Calling a function on another stack: the only machine code that is written by hand.

    rt.on_stack(top, function, argument)      function(argument), with `top` as the upper end of its stack

The frame pointer leads back to the caller's stack, so that debuggers and `rt.note_calls` can walk it.  The code is
given as bytes in front of an empty body, as LLVM has an assembler for this machine only.  It is `weak`, so that LLVM
does not look into that body.
"""

from __future__ import annotations

SYMBOL = "rt.on_stack"
WORDS = {
    "x86_64": [
        "55",  # push rbp
        "4889e5",  # mov rbp, rsp
        "4889fc",  # mov rsp, rdi
        "4889d7",  # mov rdi, rdx
        "ffd6",  # call rsi
        "4889ec",  # mov rsp, rbp
        "5d",  # pop rbp
        "c3",  # ret
    ],
    "aarch64": [
        "fd7bbfa9",  # stp x29, x30, [sp, #-16]!
        "fd030091",  # mov x29, sp
        "1f000091",  # mov sp, x0
        "e00302aa",  # mov x0, x2
        "20003fd6",  # blr x1
        "bf030091",  # mov sp, x29
        "fd7bc1a8",  # ldp x29, x30, [sp], #16
        "c0035fd6",  # ret
    ],
}


def definition(arch: str) -> str:
    """The text of the function; on architectures without one of ours, it calls on the current stack."""
    parameters = "ptr %top, ptr %function, ptr %what"
    if arch not in WORDS:
        return f"define internal void @{SYMBOL}({parameters}) {{\n  call void %function(ptr %what)\n  ret void\n}}"
    code = bytes.fromhex("".join(WORDS[arch]))
    data = "".join(f"\\{byte:02X}" for byte in code)
    head = f"define weak hidden void @{SYMBOL}({parameters}) naked noinline nounwind"
    return f'{head} prologue [{len(code)} x i8] c"{data}"\n{{\n  ret void\n}}'
