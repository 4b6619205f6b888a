"""An element that is changed and put back is taken out of its array first, so that the arrays in it have one owner and
are changed in place.

    t = index cells i             t = index cells i
    a = t.0                 =>    u = update cells (null) i
    b = update a x j              a = t.0
    s = (b)                       b = update a x j
    d = update cells s i          s = (b);  d = update u s i

So it is with the references of a store, and with records in arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import kinds
from dplc.flat.walk import blocks, names, rhs_mentions, supply_for, with_binds, with_body, with_inner
from dplc.passes.memory.late_updates import UPDATES, is_update
from dplc.passes.memory.owners import counted_paths, operands
from dplc.passes.recursion.tail_calls import blank


def taken_elements(program: f.Program) -> f.Program:
    supply = supply_for(program)
    return replace(program, fns={name: with_body(fn, _block(fn.body, supply)) for name, fn in program.fns.items()})


def _block(block: f.Block, supply: f.Supply) -> f.Block:
    if not kinds(block) & UPDATES:
        return block
    binds = [with_inner(bind, lambda b: _block(b, supply)) if blocks(bind.rhs) else bind for bind in block.binds]
    for bind in [*filter(is_update, binds)]:
        end = binds.index(bind)
        if (at := _read(binds, end, block.results)) is not None:
            binds = _with_taken(binds, at, end, supply)
    return with_binds(block, binds)


def _with_taken(binds: list[f.Bind], at: int, end: int, supply: f.Supply) -> list[f.Bind]:
    update = binds[end].rhs
    assert isinstance(update, f.Op)
    array, made, *place = update.args
    assert isinstance(array, f.Var)
    begin = list[f.Bind]()
    nothing = blank(made.ty, begin, supply)
    rest = f.Var(supply.fresh("rest"), array.ty)
    begin.append(f.Bind((rest,), f.Op("update", (array, nothing, *place), (("unchecked", True),), update.span)))
    last = f.Bind(binds[end].vars, f.Op("update", (rest, made, *place), (("unchecked", True),), update.span))
    return [*binds[: at + 1], *begin, *binds[at + 1 : end], last, *binds[end + 1 :]]


def _read(binds: Sequence[f.Bind], end: int, results: Sequence[f.Atom]) -> int | None:
    """Where the element that an update writes was read, if nothing uses the array but these two, and an array in the
    element is changed between them."""
    update = binds[end].rhs
    assert isinstance(update, f.Op)
    array, made, *place = update.args
    assert isinstance(array, f.Var)
    if not (isinstance(made.ty, f.Tup) and counted_paths(made.ty)) or array in results:
        return None
    if any(array.name in rhs_mentions(bind.rhs) for bind in binds[end + 1 :]):
        return None
    for at in range(end - 1, -1, -1):
        match binds[at].rhs:
            case f.Op("index", (whole, *where)) if whole == array and where == place:
                return at if _changed(binds[at].vars[0], binds[at + 1 : end]) else None
            case rhs if array.name in rhs_mentions(rhs):
                return None
            case _:
                pass
    return None


def _changed(element: f.Var, binds: Sequence[f.Bind]) -> bool:
    """True if operations may change a part of an element in place."""
    parts = {element.name}
    for bind in binds:
        match bind.rhs:
            case f.TupGet(f.Var(name)) if name in parts and counted_paths(bind.vars[0].ty):
                parts.add(bind.vars[0].name)
            case f.Call(_, args):
                if not parts.isdisjoint(names(args)):
                    return True
            case rhs if not parts.isdisjoint(names(operands(rhs, {})[0])):
                return True
            case _:
                pass
    return False
