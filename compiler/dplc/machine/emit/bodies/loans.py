"""Rows that are only read while their array is there: their owners are not counted.

    r = index a i        one more owner          r = index a i        no owner
    x = dot r w                            =>    x = dot r w
    drop r               one less

An array that nothing gives away between these lines has an owner all the time, so the row needs none.
"""

from __future__ import annotations

from collections.abc import Sequence

from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, blocks, names

FAR = 64  # bindings, at most, from a row to the end of its life
FRESH = ("matmul",)  # operations that read arrays and make new ones; others that only read give numbers


def loans(binds: Sequence[f.Bind]) -> set[str]:
    """The rows of a counted block whose owners need not be counted."""
    ends = {name: i for i, bind in enumerate(binds) if is_drop(bind) for name in names(atoms(bind.rhs))}
    if not ends:
        return set()
    made = {var.name for bind in binds if isinstance(bind.rhs, f.Op) for var in bind.vars}
    found = set[str]()
    for i, bind in enumerate(binds):
        match bind:
            case f.Bind((f.Var(row, f.Arr()),), f.Op("index", (f.Var(array), *_))) if row in ends:
                between = binds[i + 1 : ends[row]]
                if len(between) <= FAR and all(_keeps(one, array, made) and _only_reads(one, row) for one in between):
                    found.add(row)
            case _:
                pass
    return found


def is_drop(bind: f.Bind) -> bool:
    """True if a binding gives an owner up."""
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "drop"


def _keeps(bind: f.Bind, array: str, made: set[str]) -> bool:
    """True if nothing is given away that may be the array: only numbers, and other results of operations, which are
    owners of their own.  Loops borrow what is around them."""
    match bind.rhs:
        case f.Op(op, args) if op != "take":
            given = [args[i] for i in OPS[op].own if i < len(args)]
        case f.For(inits=inits) | f.While(inits=inits):
            given = list(inits)
        case f.Par(outs=outs):
            given = [out.target for out in outs if out.target is not None]
        case f.TupGet() | f.TupMake():
            given = []
        case _:
            return False
    counted = [x.name for x in given if isinstance(x, f.Var) and not isinstance(x.ty, f.Num)]
    return all(name != array and name in made for name in counted)


def _only_reads(bind: f.Bind, row: str) -> bool:
    """True if a row is only an operand of what reads it, at any depth."""
    inner = blocks(bind.rhs)
    if any(row in names(block.results) for block in inner):
        return False
    reads = isinstance(bind.rhs, f.Op) and (_gives_numbers(bind) or bind.rhs.op in FRESH)
    return (reads or row not in names(atoms(bind.rhs))) and all(_only_reads(one, row) for b in inner for one in b.binds)


def _gives_numbers(bind: f.Bind) -> bool:
    return bool(bind.vars) and all(isinstance(var.ty, f.Num) for var in bind.vars)
