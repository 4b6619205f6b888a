"""LLVM text -> object code: parse, verify, optimise, select instructions.

The optimisation level falls with the size of what LLVM may optimise, so that large programs start quickly.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from dplc.machine.llvm import api, target, versions
from dplc.machine.llvm.target import Target

LARGE = 60_000  # lines of LLVM text above which less is optimised; loops still become vectors
HUGE = 250_000  # above which nothing is
INLINING = 100  # LLVM's default is 225; this takes half the time, as flat is inlined already


def module(text: str, where: Target | None = None) -> str:
    """Adds the target to the text.  Every function keeps a frame pointer, and all that can fail are in one section, so
    that a failure can walk the stack."""
    where = where or target.here()
    section = ' section ".text"' if where.jit else ""
    more = rf'\1 "frame-pointer"="non-leaf"{section}\2 {{'
    return where.head + re.sub(r"(?m)^(define (?![^\n]* section )[^\n]*?)( !dbg ![0-9]+)? \{$", more, text)


def assemble(text: str, where: Target | None = None, most: int = 2, flat: bool = False) -> bytes:
    """LLVM text -> object code, at an optimisation level of `most` or less.  `flat`: all of it comes from flat."""
    with optimised(text, where or target.here(), most, flat) as (machine, module):
        return machine.emit_object(module)


@contextmanager
def optimised(text: str, where: Target, most: int = 2, flat: bool = False) -> Generator[tuple[api.Machine, api.Module]]:
    """The code generator and the optimised module, which lives until the end of the `with`.  Text from flat does not
    need the passes that LLVM adds at level 2 (value numbering, jump threading, ...), which take a fifth of the time;
    the runtime library does."""
    effort = min(most, allowed(text))
    machine = where.machine(effort)
    with api.parsed(text) as module:
        api.optimise(module, machine, min(effort, 1) if flat else effort, most == 2 and effort > 0, INLINING)
        yield machine, module


def allowed(text: str) -> int:
    """The highest level for a text.  Functions that LLVM leaves alone, as all but the hot ones of a program that runs,
    cost little and do not count."""
    lines = text.count("\n")
    if lines >= LARGE:
        lines = sum(versions.sizes(text).values())
    return 2 if lines < LARGE else 1 if lines < HUGE else 0
