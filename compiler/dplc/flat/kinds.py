"""Which kinds of right-hand sides a block has, inner blocks included, as bits of a number.

    LOOPS = any_of(f.For, f.While, "update")          bits of node classes, and of names of operations
    if not kinds(block) & LOOPS: return block         nothing in here is of these kinds

Most passes change few of a program's blocks, and leave the others after one look.  What is known of a block is kept
with it, so only blocks that are new are gone through.
"""

from __future__ import annotations

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.remembered import remembered
from dplc.flat.walk import blocks

NODES = (f.Op, f.Call, f.Ad, f.TupMake, f.TupGet, f.ConMake, f.If, f.Switch, f.For, f.While, f.Build, f.Map, f.Par)
OF_NODE = {node: 1 << number for number, node in enumerate(NODES)}
OF_OP = {name: 1 << number for number, name in enumerate(OPS, len(NODES))}
ELEMENTWISE = 1 << len(NODES) + len(OPS)  # an operation for each element of an array
WIDE = {name for name, row in OPS.items() if row.elementwise or name == "acc_add"}


def any_of(*wanted: type | str) -> int:
    """The bits of these kinds: node classes, and operations by name."""
    bits = 0
    for kind in wanted:
        bits |= OF_OP[kind] if isinstance(kind, str) else OF_NODE[kind]
    return bits


@remembered
def kinds(block: f.Block) -> int:
    """The bits of all kinds in a block."""
    found = 0
    for bind in block.binds:
        rhs = bind.rhs
        if isinstance(rhs, f.Op):
            found |= OF_OP[rhs.op]
            if rhs.op in WIDE and type(bind.vars[0].ty) is f.Arr:
                found |= ELEMENTWISE
        else:
            found |= OF_NODE[type(rhs)]
            for inner in blocks(rhs):
                found |= kinds(inner)
    return found
