"""What the forward sweep keeps for the backward sweep: the choice of residuals.

Backward code mentions variables of the forward code by name.  Those that it needs are kept, except where the value is
cheap to compute again from what is there anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from dplc.flat import term as f
from dplc.flat.types import rank_of
from dplc.flat.walk import atoms, mentioned

CHEAP = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "not",
        "and",
        "or",
        "bit_and",
        "bit_or",
        "bit_xor",
        "shift_left",
        "shift_right",
        "min",
        "max",
        "select",
        "cast",
        "dim",
        "is_null",
    ]
)


def choose(
    block: f.Block, local: Collection[str], given: Collection[str], binds: Sequence[f.Bind]
) -> tuple[list[f.Var], list[f.Bind]]:
    """What backward code `block` needs of the forward block that bound the names `local`, by `binds` and otherwise:
    the variables to keep, and the bindings to repeat, in order.  The names `given` are at hand."""
    used = mentioned(block)
    keep = {name: var for name, var in used.items() if name in local and name not in given}
    known = {name for name in used if name not in local} | set(given)
    keep |= sources(keep, known, local, binds)
    again: list[f.Bind] = []
    for bind in reversed(binds):
        if len(bind.vars) == 1 and bind.vars[0].name in keep and cheap(bind):
            if all(a.name in keep or a.name in known for a in atoms(bind.rhs) if isinstance(a, f.Var)):
                del keep[bind.vars[0].name]
                again.append(bind)
    return list(keep.values()), again[::-1]


def sources(
    keep: Mapping[str, f.Var], known: Collection[str], local: Collection[str], binds: Sequence[f.Bind]
) -> dict[str, f.Var]:
    """Numbers worth keeping instead: each is all that is missing to compute two or more of `keep` again.

    a = mul 3.7 s; b = sub 1.0 s        a, b are needed: s is kept"""
    missing: Counter[f.Var] = Counter()
    for bind in binds:
        if len(bind.vars) == 1 and bind.vars[0].name in keep and cheap(bind):
            operands = {a for a in atoms(bind.rhs) if isinstance(a, f.Var)}
            lacking = {a for a in operands if a.name not in keep and a.name not in known}
            if len(lacking) == 1:
                missing.update(lacking)
    return {v.name: v for v, count in missing.items() if count > 1 and v.name in local and isinstance(v.ty, f.Num)}


def cheap(bind: f.Bind) -> bool:
    match bind.rhs:
        case f.Op(op, args):
            return op == "dim" or (op in CHEAP and not any(rank_of(a.ty) for a in args))
        case f.TupGet():
            return True
        case _:
            return False
