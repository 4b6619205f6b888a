"""The optimisation level for a program that runs once: `let x = f 3.0` is done before LLVM has improved it.

Optimising pays in loops, recursion and operations on arrays.  It does not pay in functions that format values: they
spend their time in the runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.call_graph import groups
from dplc.flat.ops.row import Effect
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks


def effort(program: f.Program) -> int:
    """The optimisation level, 0 or 2."""
    number, recursive = groups(program)
    for fn in program.fns.values():
        everything = list(bindings(fn.body))
        if number[fn.name] in recursive and not writes(everything):
            return 2
        if any(repeats(bind) for bind in everything):
            return 2
    return 0


def repeats(bind: f.Bind) -> bool:
    match bind.rhs:
        case f.For() | f.While() | f.Build() | f.Map() as loop:
            return not writes([inner for block in blocks(loop) for inner in bindings(block)])
        case f.Op(name, args):
            return not OPS[name].light and any(isinstance(x.ty, f.Arr) for x in (*args, *bind.vars))
        case _:
            return False


def writes(binds: list[f.Bind]) -> bool:
    return any(isinstance(bind.rhs, f.Op) and Effect.APPEND in OPS[bind.rhs.op].effects for bind in binds)


def bindings(block: f.Block) -> Iterator[f.Bind]:
    """All bindings of a block, those of inner blocks included."""
    for bind in block.binds:
        yield bind
        for inner in blocks(bind.rhs):
            yield from bindings(inner)
