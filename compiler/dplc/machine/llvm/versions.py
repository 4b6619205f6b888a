"""The versions of a program's text: one that is compiled quickly, and others in which LLVM optimises some functions.

All have the same functions.  Lines of a function that only one of its versions has end in a mark.  Functions that a
later version can replace while an earlier one runs are `dso_local`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container

from dpl.regex import regex

from dplc.machine.llvm.sampler import sampler

QUICK, FINAL = " ; quick", " ; final"
REPLACED = "@dpl_replaced"  # a byte of a version: 1 if there is a later one
SHARED = regex(r'(?m)^define dso_local (?=.*@"dpl )')
FUNCTION = regex(r'(?ms)^(define [^\n]*?@"(dpl [^"]*)"\([^\n]*\{\n)(.*?)^\}\n')
INLINED = regex(r"(?ms)^define internal ([^\n]*?@([\w.]+)\([^\n]*?\)) [^\n]*\balwaysinline\b[^\n]*\{\n.*?^\}\n")
CALLED = regex(r'@"(dpl [^"]*)"\(')
SMALL = 60  # lines of a function that is optimised if one that calls it is, as it may be inlined there


def final(text: str) -> str:
    """The version that LLVM optimises as a whole."""
    return _without(text, QUICK)


def quick(text: str, shared: Container[str] = ()) -> str:
    """The version that is compiled quickly: it calls replaceable functions through the linker's stubs, and those of the
    `shared` runtime that other versions inline."""
    return called(_without(SHARED.sub("define ", text), FINAL), shared) + _watched(text)


def plain(text: str, shared: Container[str]) -> str:
    """The only version, for code that LLVM does not optimise."""
    return called(final(text), shared)


def called(text: str, shared: Container[str]) -> str:
    """The text with the inlined functions of the `shared` runtime declared: without optimisation, a copy at each call
    takes long to compile and is slower than the call."""
    return INLINED.sub(lambda found: f"declare {found[1]}\n" if found[2] in shared else found[0], text)


def mixed(text: str, hot: Collection[str]) -> str:
    """The version in which LLVM optimises the hot functions, and the small ones that these call."""
    chosen = _with_small(text, hot)

    def function(found: re.Match[str]) -> str:
        head, name, body = found.groups()
        if name in chosen:
            return _without(found[0], QUICK)
        if " optnone " not in head:
            head = head.replace(' "frame-pointer"', ' optnone noinline "frame-pointer"', 1)
        return SHARED.sub("define ", head) + _without(body, FINAL) + "}\n"

    return FUNCTION.sub(function, text) + _watched(text)


def sizes(text: str) -> dict[str, int]:
    """The functions that LLVM may optimise, each with its number of lines."""
    found = FUNCTION.finditer(text)
    return {name: body.count("\n") for head, name, body in (f.groups() for f in found) if " optnone " not in head}


def has_versions(text: str) -> bool:
    """True if a later version has functions to replace."""
    return bool(SHARED.search(text))


def _with_small(text: str, hot: Collection[str]) -> set[str]:
    bodies = {name: body for _, name, body in (found.groups() for found in FUNCTION.finditer(text))}
    chosen, new = set(hot), list(hot)
    while new:
        for name in CALLED.findall(bodies.get(new.pop(), "")):
            if name not in chosen and bodies.get(name, "").count("\n") <= SMALL:
                chosen.add(name)
                new.append(name)
    return chosen


def _watched(text: str) -> str:
    return f"{REPLACED} = global i8 0\n{sampler(text)}"


def _without(text: str, mark: str) -> str:
    return "\n".join([line for line in text.split("\n") if not line.endswith(mark)]) if mark in text else text
