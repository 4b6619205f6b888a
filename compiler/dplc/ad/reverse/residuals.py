"""The choice of residuals, the variables that forward code keeps for backward code, by a minimum cut
(rematerialisation; Moses et al. 2021).

Backward code mentions variables of the forward code by name.  Cheap operations can be repeated instead of keeping their
results.  As little as possible is kept, such that everything else can be computed again:

    t = mul 3.7 s;  u = sub 1.0 s;  y = mul t u         t, u and y are needed: s is kept
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dplc.ad.reverse.min_cut import cut
from dplc.flat import term as f
from dplc.flat.ops.table import OPS
from dplc.flat.walk import atoms, mentioned

BYTES = {"bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "i32": 4, "u32": 4, "f32": 4}
ARRAY, OTHER = 1 << 16, 1 << 8  # weights: an array may take much memory


def choose(
    block: f.Block, local: Collection[str], given: Collection[str], binds: Sequence[f.Bind], kept: Collection[str] = ()
) -> tuple[list[f.Var], list[f.Bind]]:
    """The residuals of a forward block that binds the names `local`, for the backward code `block`: the variables to
    keep, and the bindings to repeat, in order.  `binds` are bindings of the forward block.  The names `given` are
    available, and those in `kept` are kept in any case."""
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
    """The names that are computed again if those in `keep` are kept."""
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
    """True if a binding may be repeated.  A test for null of an outer array may not: the outer block would have to keep
    the array at each step of a loop, to save one bit."""
    match bind.rhs:
        case f.Op("is_null", (f.Var(name),)):
            return name in local
        case f.Op(op):
            return OPS[op].cheap
        case f.TupGet():
            return True
        case _:
            return False
