"""Which kinds of right-hand sides a block has, inner blocks included, as bits of a number.

    LOOPS = any_of(f.For, f.While, "update")          bits of node classes, and of names of operations
    if not kinds(block) & LOOPS: return block         nothing in here is of these kinds

Most passes change few of a program's blocks, and leave the others after one look.  What is known of a block is kept
with it, so only blocks that are new are gone through.
"""

from __future__ import annotations

from typing import get_args

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.remembered import remembered
from dplc.flat.walk import blocks


class _Bits(dict[type | str, int]):
    """Each kind has a bit of its own: a node class, or the name of an operation."""

    def __missing__(self, kind: type | str) -> int:
        self[kind] = bit = 1 << len(self)
        return bit


BITS = _Bits()
NODES = {node.__name__: node for node in get_args(f.Rhs)}
ELEMENTWISE = BITS["elementwise"]  # an operation for each element of an array


def any_of(*wanted: type | str) -> int:
    """The bits of these kinds.  Node classes may be named, too."""
    bits = 0
    for kind in wanted:
        bits |= BITS[NODES.get(kind, kind) if isinstance(kind, str) else kind]
    return bits


def has(program: f.Program, wanted: int) -> bool:
    """True if there is code of one of these kinds."""
    return any(kinds(fn.body) & wanted for fn in program.fns.values())


@remembered
def kinds(block: f.Block) -> int:
    """The bits of all kinds in a block."""
    found = 0
    for bind in block.binds:
        rhs = bind.rhs
        if isinstance(rhs, f.Op):
            found |= BITS[rhs.op]
            if bind.vars and type(bind.vars[0].ty) is f.Arr and (OPS[rhs.op].elementwise or rhs.op == "acc_add"):
                found |= ELEMENTWISE
        else:
            found |= BITS[type(rhs)]
            for inner in blocks(rhs):
                found |= kinds(inner)
    return found
