"""The processor and the version of LLVM, as texts that change with them.

LLVM itself is not asked, as a program from the cache runs without it.
"""

from __future__ import annotations

import os
import sys
from functools import cache

# the lines of /proc/cpuinfo that decide which code can run and which is best
LINES = (
    b"vendor_id", b"cpu family", b"model", b"stepping", b"flags",
    b"CPU implementer", b"CPU architecture", b"CPU variant", b"CPU part", b"Features",
)  # fmt: skip
LLVM = os.path.join("llvmlite", "binding", "libllvmlite.so")


@cache
def describe() -> bytes:
    """Everything that object code depends on besides the program."""
    return b"\n".join((os.uname().machine.encode(), processor(), llvm()))


def processor() -> bytes:
    """The first processor's lines; without /proc, what LLVM says."""
    text = b""
    try:
        with open("/proc/cpuinfo", "rb", 0) as file:
            while b"\n\n" not in text and (more := file.read(4096)):
                text += more
    except OSError:
        from dplc.machine.llvm import target

        return target.describe().encode()
    first = text.partition(b"\n\n")[0].split(b"\n")
    return b"\n".join(line for line in first if line.partition(b":")[0].strip() in LINES)


def llvm() -> bytes:
    """The size and time of LLVM's library."""
    for folder in sys.path:
        try:
            status = os.stat(os.path.join(folder, LLVM))
        except OSError:
            continue
        return b"%d %d" % (status.st_size, status.st_mtime_ns)
    return b""
