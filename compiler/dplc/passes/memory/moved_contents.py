"""What a reference holds moves out of it, and what is made of that moves in: so an array in a reference is updated in
place, as it has one owner.

    a = ref_get r                 a = ref_get taken=true r       gives the content with its owner: `r` counts no more
    b = update a x i        =>    b = update a x i
    ref_set r b                   ref_set taken=true r b         forgets what `r` held

In between nothing may look at references, and nothing may fail while `r` holds what has been given away.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpl.node import replace

from dplc.flat import term as f
from dplc.flat.kinds import any_of, kinds
from dplc.flat.walk import blocks, with_binds, with_body, with_inner
from dplc.passes.memory.owners import counted_paths
from dplc.passes.simplify.purity import droppable, quiet

READS = any_of("ref_get")


def moved_contents(program: f.Program) -> f.Program:
    return replace(program, fns={name: with_body(fn, _block(fn.body)) for name, fn in program.fns.items()})


def _block(block: f.Block) -> f.Block:
    if not kinds(block) & READS:
        return block
    binds = [with_inner(bind, _block) if blocks(bind.rhs) else bind for bind in block.binds]
    for at, bind in enumerate(binds):
        match bind.rhs:
            case f.Op("ref_get", (f.Var(),)) as get if counted_paths(bind.vars[0].ty):
                if (end := _set_again(binds, at)) is not None:
                    binds[at], binds[end] = _taken(bind, get), _taken(binds[end], binds[end].rhs)
            case _:
                pass
    return with_binds(block, binds)


def _taken(bind: f.Bind, rhs: f.Rhs) -> f.Bind:
    assert isinstance(rhs, f.Op)
    return f.Bind(bind.vars, replace(rhs, attrs=(*rhs.attrs, ("taken", True))))


def _set_again(binds: Sequence[f.Bind], at: int) -> int | None:
    """Where the reference that is read `at` a place is set, if its content may move out until then."""
    get, (content,) = binds[at].rhs, binds[at].vars
    assert isinstance(get, f.Op)
    parts = {content.name}  # names of the content
    alone = len(counted_paths(content.ty)) == 1
    failing = False
    for k in range(at + 1, len(binds)):
        match binds[k].rhs:
            case f.Op("ref_set", args):
                return k if args[0] == get.args[0] and not failing else None
            case f.TupGet(f.Var(name)) if name in parts:
                parts.add(binds[k].vars[0].name)
            case f.Op("update", (f.Var(name), *_)) if alone and name in parts:
                parts, failing = set(), False  # until here, the reference holds its array if something fails
            case f.Op() as op if quiet(op) and alone and parts:
                failing = failing or not droppable(op)
            case rhs if not droppable(rhs):
                return None
            case _:
                pass
    return None
