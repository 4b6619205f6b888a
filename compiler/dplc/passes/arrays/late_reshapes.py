"""An elementwise operation on a reshaped array is done before the array is reshaped, so that it fuses with its maker.

    t = mul x c                                  t = mul x c
    r = reshape t n m                =>          y.flat = add t 0.0
    y = add r 0.0                                y = reshape y.flat n m

`fuse` does this first.  Gradients are reshaped like this: what a program gets of one has 0.0 added at its end.
"""

from __future__ import annotations

from collections import Counter

from dplc.flat import term as f
from dplc.flat.ops.row import Fails
from dplc.flat.ops.table import OPS
from dplc.flat.types import elem_of, rank_of
from dplc.flat.walk import atoms, with_binds


def late_reshapes(block: f.Block, uses: Counter[str]) -> f.Block:
    """The block with this done; `uses` counts how often variables are mentioned, and is kept up to date."""
    reshapes: dict[str, f.Op] = {}
    early: set[str] = set()  # those that another one has replaced, which compares the numbers of elements
    binds: list[f.Bind] = []
    for bind in block.binds:
        made = _exchanged(bind, reshapes, uses)
        if made is None:
            made = (bind,)
        else:
            early |= {a.name for a in atoms(bind.rhs) if isinstance(a, f.Var) and a.name in reshapes}
        binds += made
        last = made[-1]
        if isinstance(last.rhs, f.Op) and last.rhs.op == "reshape":
            reshapes[last.vars[0].name] = last.rhs
    return with_binds(block, [bind for bind in binds if not (bind.vars and bind.vars[0].name in early)])


def _exchanged(bind: f.Bind, reshapes: dict[str, f.Op], uses: Counter[str]) -> tuple[f.Bind, f.Bind] | None:
    """The operation, then the reshape, if its only array is a reshaped one that nothing else reads."""
    op = bind.rhs
    if not (isinstance(op, f.Op) and OPS[op.op].elementwise and OPS[op.op].fails is Fails.NEVER):
        return None
    arrays = [a for a in op.args if rank_of(a.ty)]
    if not arrays or any(a != arrays[0] for a in arrays) or not isinstance(arrays[0], f.Var):
        return None
    name = arrays[0].name
    if name not in reshapes or uses[name] != len(arrays):
        return None
    var, source = bind.vars[0], reshapes[name].args[0]
    if isinstance(source, f.Var):
        uses[source.name] += len(arrays) - 1
    early = f.Var(f"{var.name}.flat", f.Arr(elem_of(var.ty), rank_of(source.ty)))
    args = tuple([source if a == arrays[0] else a for a in op.args])
    uses[name] = 0
    uses[early.name] = 1
    late = f.Op("reshape", (early, *reshapes[name].args[1:]), reshapes[name].attrs, reshapes[name].span)
    return f.Bind((early,), f.Op(op.op, args, op.attrs, op.span)), f.Bind((var,), late)
