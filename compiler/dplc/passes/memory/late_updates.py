"""Updates wait until what reads the array as it was is done, so that they are in place.

    b = update a x i          v = index a j
    v = index a j        =>   y = add v z
    y = add v z               b = update a x i
    c = update b y j          c = update b y j

An update that may fail waits only for what cannot.
"""

from __future__ import annotations

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.ops.table import OPS
from dplc.flat.walk import blocks, names, rhs_mentions, with_binds, with_body, with_inner
from dplc.passes.simplify.purity import droppable

UPDATES = any_of("update")

Parts = dict[str, list[str]]


def late_updates(program: f.Program) -> f.Program:
    return replace(program, fns={name: with_body(fn, _block(fn.body)) for name, fn in program.fns.items()})


def _block(block: f.Block) -> f.Block:
    if not kinds(block) & UPDATES:
        return block
    binds = [with_inner(bind, _block) if blocks(bind.rhs) else bind for bind in block.binds]
    if not any(map(is_update, binds)):
        return with_binds(block, binds)
    parts, results = _parts(binds), set(names(block.results))
    for at in range(len(binds) - 1, -1, -1):
        if is_update(binds[at]) and (after := _place(binds, at, parts, results)) > at + 1:
            binds[at:after] = [*binds[at + 1 : after], binds[at]]
    return with_binds(block, binds)


def is_update(bind: f.Bind) -> bool:
    """True for an update of an array that has a name."""
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "update" and isinstance(bind.rhs.args[0], f.Var)


def _place(binds: list[f.Bind], at: int, parts: Parts, results: set[str]) -> int:
    """The place after the last use of the array that an update changes, or of its parts; that of the update if it is
    used later, too."""
    update = binds[at].rhs
    assert isinstance(update, f.Op)
    old, (new,) = _whole(update.args[0], parts), binds[at].vars
    place, waits = at, at
    for k in range(at + 1, len(binds)):
        used = set(rhs_mentions(binds[k].rhs))
        if new.name in used:
            break
        place, waits = k if not old.isdisjoint(used) else place, k
    if place == at:
        return at
    kept = results | {name for bind in binds[waits + 1 :] for name in rhs_mentions(bind.rhs)}
    if not old.isdisjoint(kept):
        return at
    passed = all(droppable(bind.rhs) for bind in binds[at + 1 : place + 1])
    return place + 1 if passed or _was_read(binds[:at], update) else at


def _parts(binds: list[f.Bind]) -> Parts:
    """Of each array, what bindings make parts of it: views, and rows."""
    parts: Parts = {}
    for bind in binds:
        match bind.rhs:
            case f.Op(op, (f.Var(name), *_)) if OPS[op].views or op == "index":
                parts.setdefault(name, []).extend([var.name for var in bind.vars if not isinstance(var.ty, f.Num)])
            case _:
                pass
    return parts


def _whole(array: f.Atom, parts: Parts) -> set[str]:
    """The names of an array, its parts, and theirs."""
    found, left = set[str](), [*names((array,))]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += parts.get(name, ())
    return found


def _was_read(binds: list[f.Bind], update: f.Op) -> bool:
    """True if an update cannot fail: it is in bounds, or the same place was read before."""
    array, _, *place = update.args
    return bool(update.attr("unchecked")) or any(
        isinstance(bind.rhs, f.Op) and bind.rhs.op == "index" and bind.rhs.args == (array, *place) for bind in binds
    )
