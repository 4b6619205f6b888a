"""The two versions of a program's text: one that is compiled quickly, and one that LLVM optimises.

Both have the same functions.  Lines that only one of them has end in a mark.  Functions that the optimised version can
replace while the quick one runs are `dso_local`.
"""

from __future__ import annotations

import re

QUICK, FINAL = " ; quick", " ; final"
REPLACED = "@dpl_replaced"  # a byte of the quick version: 1 if the other version is there
SHARED = re.compile(r'(?m)^define dso_local (?=.*@"dpl )')
NAMED = re.compile(r'(?m)^define dso_local .*?@("dpl [^"]*")')


def final(text: str) -> str:
    """The version that LLVM optimises."""
    return _without(text, QUICK)


def quick(text: str) -> str:
    """The version that is compiled quickly: it calls replaceable functions through the linker's stubs."""
    return _without(SHARED.sub("define ", text), FINAL) + f"{REPLACED} = global i8 0\n"


def has_versions(text: str) -> bool:
    """True if the optimised version has functions to replace."""
    return bool(SHARED.search(text))


def _without(text: str, mark: str) -> str:
    return "\n".join([line for line in text.split("\n") if not line.endswith(mark)]) if mark in text else text
