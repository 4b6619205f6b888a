"""A read is left out if nothing uses its element.  The checks of its place stay.

    x = index a i j          =>      n = dim k=0 a; m = dim k=1 a; check_index i n; check_index j m

Such reads are left of forward sweeps whose value a gradient does not need; they may fail.  The host then needs no copy
of an array that a device has made.
"""

from __future__ import annotations

from collections.abc import Collection

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import mentions, supply_for, with_binds, with_body, with_inner
from dplc.passes.parallel.scatters import place_checks


def unread(program: f.Program) -> f.Program:
    """The program without such reads."""
    supply, made = supply_for(program), program.copy()
    for name, fn in program.fns.items():
        made.fns[name] = with_body(fn, _block(fn.body, set(mentions(fn.body)), supply))
    return made


def _block(block: f.Block, used: Collection[str], supply: f.Supply) -> f.Block:
    binds: list[f.Bind] = []
    for bind in block.binds:
        match bind.rhs:
            case f.Op("index", (f.Var() as array, *_)) as read if bind.vars[0].name not in used:
                dims = tuple([f.Var(supply.fresh("dim"), f.I64) for _ in range(rank_of(array.ty))])
                if checks := place_checks(read, dims):
                    lengths = [f.Bind((dim,), f.Op("dim", (array,), (("k", k),))) for k, dim in enumerate(dims)]
                    binds += [*lengths, *checks]
            case _:
                binds.append(with_inner(bind, lambda inner: _block(inner, used, supply)))
    return with_binds(block, binds)
