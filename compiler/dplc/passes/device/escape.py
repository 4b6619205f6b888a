"""Escape analysis: the arrays that do not outlive the block that makes them.

    ds = par j < 16 to keep { ... }        ds is only read: its memory can be in the stack frame
    k = argmin ds
    yield k

An array stays if all its uses read elements or lengths, copy it, or add it to another one.  Points do not write over
it, as it has no owner.  An array of which there is a view, or that a branch gives, stays if these stay.  Results of
loops, arguments of calls and parts of tuples leave.
"""

from __future__ import annotations

from collections.abc import Iterator

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.types import rank_of
from dplc.flat.walk import atoms, blocks, every, names, operands_of


def staying(body: f.Block) -> set[str]:
    """The arrays of numbers that a body and its inner blocks make, and that do not leave their blocks."""
    made = {var.name for bind in every(body) for var in bind.vars
            if isinstance(var.ty, f.Arr) and isinstance(var.ty.elem, f.Num)}  # fmt: skip
    if not made:
        return made
    left = {*names(body.results)}.union(*map(leaves, (bind.rhs for bind in every(body))))
    parts = [pair for bind in every(body) for pair in same(bind)]
    while more := {part for name, part in parts if name in left and part not in left}:
        left |= more
    return made - left


def same(bind: f.Bind) -> Iterator[tuple[str, str]]:
    """Pairs of what is bound, and what that is or is a part of."""
    match bind.rhs:
        case f.Op(op, (f.Var(name), *_)) if is_view(op) and isinstance(bind.vars[0].ty, f.Arr):
            yield bind.vars[0].name, name
        case f.If() | f.Switch() as branch:
            for block in blocks(branch):
                for var, result in zip(bind.vars, block.results, strict=False):
                    yield from ((var.name, name) for name in names((result,)))
        case _:
            pass


def is_view(op: str) -> bool:
    return OPS[op].views or op == "index"


def leaves(rhs: f.Rhs) -> Iterator[str]:
    """The variables that leave their block by a right-hand side, or by the ends of its inner blocks."""
    match rhs:
        case f.Op(op) if OPS[op].reads:
            pass
        case f.Op("index", (array, *indices)) if len(indices) == rank_of(array.ty):
            pass
        case f.Op(op, (_, *rest)) if is_view(op):
            yield from names(rest)
        case f.Op("acc_index", (target, *_)):
            yield from names((target,))
        case f.Par(_, body, outs):
            for out, result in zip(outs, body.results, strict=True):
                if out.kind != "keep":
                    yield from names((*operands_of(out), result))
        case f.If() | f.Switch():
            yield from names(atoms(rhs))
        case _:
            yield from names(atoms(rhs))
            for block in blocks(rhs):
                yield from names(block.results)
