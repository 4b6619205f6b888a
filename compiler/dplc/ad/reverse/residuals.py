"""The choice of residuals: what forward code keeps for backward code, by a minimum cut (rematerialisation).

Backward code mentions variables of the forward code by name.  What is cheap can be computed again instead of kept; so
much is kept that the rest can be, and as little as possible:

    t = mul 3.7 s;  u = sub 1.0 s;  y = mul t u         t, u and y are needed: s is kept
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dplc.ad.reverse.min_cut import cut
from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, mentioned

BYTES = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "i32": 4, "u32": 4, "f32": 4}
ARRAY, OTHER = 1 << 16, 1 << 8  # what may hold much in memory is taken to weigh so much


def choose(
    block: f.Block, local: Collection[str], given: Collection[str], binds: Sequence[f.Bind], kept: Collection[str] = ()
) -> tuple[list[f.Var], list[f.Bind]]:
    """What backward code `block` needs of the forward block that bound the names `local`, by `binds` and otherwise:
    the variables to keep, and the bindings to repeat, in order.  The names `given` are at hand, those in `kept` are
    kept anyway."""
    needed = {name: var for name, var in mentioned(block).items() if name in local and name not in given}
    cheap = {bind.vars[0].name: bind for bind in binds if len(bind.vars) == 1 and is_cheap(bind, local)}
    cone, todo = dict(needed), list(needed)
    while todo:
        for var in operands(cheap.get(todo.pop())):
            if var.name in local and var.name not in given and var.name not in cone:
                cone[var.name] = var
                todo.append(var.name)
    weights = {name: 0 if name in kept else weight(var.ty) for name, var in cone.items()}
    sources = {n: [v.name for v in operands(cheap[n]) if v.name in cone] for n in cone if n in cheap}
    keep = cut(weights, sources, needed)
    again = repeated(needed, keep, sources)
    return [cone[name] for name in cone if name in keep], [bind for name, bind in cheap.items() if name in again]


def repeated(needed: Collection[str], keep: Collection[str], sources: Mapping[str, Collection[str]]) -> set[str]:
    """What is computed again, where so much is kept."""
    again, todo = set[str](), list(needed)
    while todo:
        name = todo.pop()
        if name not in keep and name not in again:
            again.add(name)
            todo += sources[name]
    return again


def operands(bind: f.Bind | None) -> list[f.Var]:
    return [] if bind is None else [a for a in atoms(bind.rhs) if isinstance(a, f.Var)]


def weight(ty: f.Type) -> int:
    match ty:
        case f.Num(name):
            return BYTES.get(name, 8)
        case f.Tup(items):
            return sum(map(weight, items))
        case f.Arr():
            return ARRAY
        case _:
            return OTHER


def is_cheap(bind: f.Bind, local: Collection[str]) -> bool:
    """Whether it may be computed again.  Not whether an array of an enclosing block is null: that block would have to
    keep the array, at each step of a loop, for one bit."""
    match bind.rhs:
        case f.Op("is_null", (f.Var(name),)):
            return name in local
        case f.Op(op):
            return OPS[op].cheap
        case f.TupGet():
            return True
        case _:
            return False
