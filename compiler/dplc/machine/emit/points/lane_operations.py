"""What there is for lanes: operations on vectors, and branches whose arms can both be done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dplc.flat import term as f
from dplc.flat.elementary import is_function
from dplc.flat.walk import every
from dplc.machine.emit.scalars.vectors import ROWS
from dplc.passes.simplify.fold import PRODUCTS
from dplc.passes.simplify.purity import droppable

FLOATS = (f.F32, f.F64)


def has_functions(binds: Sequence[f.Bind]) -> bool:
    """True if there are functions that LLVM makes vectors of."""
    return any(is_function(bind.rhs) for bind in every(f.Block(tuple(binds), ())))


def is_cell(ty: f.Type) -> bool:
    """True for tuples of floats of one type; they may be nested."""
    return isinstance(ty, f.Tup) and len(found := set(numbers_in(ty))) == 1 and found <= {*FLOATS}


def numbers_in(ty: f.Type) -> Iterator[f.Type]:
    if isinstance(ty, f.Tup):
        for item in ty.items:
            yield from numbers_in(item)
    else:
        yield ty


def selects(branch: f.If) -> bool:
    """True for a branch on arithmetic, which may be done where it is not asked for, and on numbers of arrays, which
    masks protect."""
    done = [bind.rhs for arm in (branch.then, branch.else_) for bind in arm.binds]
    return all(selects(rhs) if isinstance(rhs, f.If) else is_plain(rhs) or is_function(rhs) or is_read(rhs)
               for rhs in done)  # fmt: skip


def is_read(rhs: f.Rhs) -> bool:
    """True for a read of a number that cannot fail."""
    match rhs:
        case f.Op("index", (f.Var(ty=f.Arr(elem, rank)), *at)):
            return rank == len(at) and elem in (*FLOATS, f.BOOL) and droppable(rhs)
        case _:
            return False


def reads(branch: f.If) -> bool:
    """True for a branch that reads a number of an array."""
    return any(is_read(bind.rhs) for arm in (branch.then, branch.else_) for bind in every(arm))


def is_plain(rhs: f.Rhs) -> bool:
    """True for arithmetic that there is for vectors; powers only where they are products."""
    match rhs:
        case f.Op("powi", (_, f.Const(power))):
            return power in PRODUCTS
        case _:
            return isinstance(rhs, f.Op) and rhs.op in ROWS


def arms_fit(branch: f.If) -> bool:
    """True for a branch whose arms can be done by some of the lanes, or not at all: there are no loops in them."""
    done = [bind.rhs for arm in (branch.then, branch.else_) for bind in arm.binds]
    return all(arms_fit(rhs) if isinstance(rhs, f.If) else isinstance(rhs, f.Op | f.TupGet) for rhs in done)
