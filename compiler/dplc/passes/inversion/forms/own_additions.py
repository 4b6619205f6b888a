"""What each point of a nest adds at its own place only is kept, not added.

    c' = par i < n to add (c = c0) {                    c = acc_zeros c0 n m
      par j < m to add (c) {                            c' = par i < n to keep in c {
        ...; c = acc_index c v n m i j          =>        par j < m to keep { ...; x = index c i j
        yield c } }                                                           yield acc_add x v } }

So no zeros are made for `c` if it is null, and the rest of what the nest adds may be inverted alone.
"""

from __future__ import annotations

from collections.abc import Collection

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.affine import Affine
from dplc.flat.types import of_rank
from dplc.flat.walk import bound_inside, is_in, names, rhs_mentions


@node
class Level:
    """A Par of a nest that hands an accumulator on: the number of its out, and of the bindings that add to it."""

    par: f.Par
    out: int
    chain: tuple[int, ...]


@node
class Own:
    """An accumulator: the levels of its nest, and what the innermost one adds."""

    levels: tuple[Level, ...]
    values: tuple[f.Atom, ...]
    dims: tuple[f.Atom, ...]


def kept_at_own(
    bind: f.Bind, par: f.Par, affine: Affine, supply: f.Supply, shared: Collection[str]
) -> list[f.Bind] | None:  # fmt: skip
    """The bindings of a nest that keeps what its points add at their own places; None if there is nothing to keep.
    Accumulators of a nest around this one are `shared`."""
    before: list[f.Bind] = []
    for k, out in enumerate(par.outs):
        if out.kind == "add" and not is_in(out.target, shared) and (own := found(par, k, affine)) is not None:
            target = zeros(before, out, own, supply)
            par = keeping(par, own.levels, own, target, supply)
    return [*before, replace(bind, rhs=par)] if par is not bind.rhs else None


def found(par: f.Par, k: int, affine: Affine) -> Own | None:
    """Accumulator number `k`, if each point of the nest adds to its own place only."""
    chain = handed_down(par, k)
    return chain and own_places(*chain, affine, {var.name for var in bound_inside(par)})


def handed_down(par: f.Par, k: int) -> tuple[list[Level], list[f.Op]] | None:
    """The levels that hand accumulator number `k` down, and what the innermost one adds; None if it is used
    otherwise."""
    levels: list[Level] = []
    while True:
        acc = par.outs[k].acc
        if acc is None or par.ordered:
            return None
        chain = uses(par.body, acc, k)
        if chain is None:
            return None
        levels.append(Level(par, k, tuple(chain)))
        ops = [par.body.binds[at].rhs for at in chain]
        match ops[0]:
            case f.Par(outs=outs) as inner if len(chain) == 1:
                par, k = inner, [out.target for out in outs].index(acc)
            case f.Op():
                return levels, [op for op in ops if isinstance(op, f.Op)]
            case _:
                return None


def uses(body: f.Block, acc: f.Var, k: int) -> list[int] | None:
    """The numbers of the bindings that hand an accumulator on to result number `k`; None if it is used otherwise."""
    found: list[int] = []
    for at, bind in enumerate(body.binds):
        if acc.name in rhs_mentions(bind.rhs):
            match bind.rhs:
                case f.Par(outs=outs) if [out.target for out in outs].count(acc) == 1 and not found:
                    acc = bind.vars[[out.target for out in outs].index(acc)]
                case f.Op("acc_index", (first, value, *_)) if first == acc and isinstance(value.ty, f.Num):
                    acc = bind.vars[0]
                case _:
                    return None
            found.append(at)
    return found if found and body.results.count(acc) == 1 and body.results[k] == acc else None


def own_places(levels: list[Level], ops: list[f.Op], affine: Affine, inside: set[str]) -> Own | None:
    """What these operations of the innermost level add, if all of them do at the indices of the nest."""
    space = [dimension for level in levels for dimension in level.par.space]
    values: list[f.Atom] = []
    dims: tuple[f.Atom, ...] = ()
    for op in ops:
        _, value, *rest = op.args
        values.append(value)
        rank = len(space)
        dims, places = tuple(rest[:rank]), rest[rank:]
        if op.attr("rank") != rank or places != [index for index, _ in space]:
            return None
        if any(affine.sum(dim) != affine.sum(count) for dim, (_, count) in zip(dims, space, strict=True)):
            return None
    if not inside.isdisjoint(names((*dims, *[count for _, count in space]))):
        return None
    return Own(tuple(levels), tuple(values), dims)


def zeros(before: list[f.Bind], out: f.Out, own: Own, supply: f.Supply) -> f.Var | None:
    """What is added to, which is there; None if it is zero."""
    if not isinstance(out.target, f.Var):
        return None
    target = f.Var(supply.fresh(out.target.name), out.target.ty)
    before.append(f.Bind((target,), f.Op("acc_zeros", (out.target, *own.dims))))
    return target


def keeping(
    par: f.Par, levels: tuple[Level, ...], own: Own, target: f.Var | None, supply: f.Supply
) -> f.Par:  # fmt: skip
    """The nest from one of its levels on, which keeps."""
    level, *rest = levels
    body = par.body
    acc = par.outs[level.out].acc
    assert acc is not None
    if rest:
        (at,) = level.chain
        bind = body.binds[at]
        inner = bind.rhs
        assert isinstance(inner, f.Par)
        made = keeping(inner, tuple(rest), own, target, supply)
        depth = sum(len(one.par.space) for one in rest)
        kept: f.Atom = f.Var(supply.fresh(acc.name), of_rank(own.values[0].ty, depth))
        assert isinstance(kept, f.Var)
        variables = tuple([kept if k == rest[0].out else var for k, var in enumerate(bind.vars)])
        binds = [*body.binds[:at], f.Bind(variables, made), *body.binds[at + 1 :]]
    else:
        binds, kept = added(body, own, acc, target, supply)
    results = tuple([kept if k == level.out else x for k, x in enumerate(body.results)])
    counts = tuple([count for one in rest for _, count in one.par.space])
    outermost = level is own.levels[0]
    out = f.Out("keep", target=target if outermost else None, inner=counts)
    outs = tuple([out if k == level.out else other for k, other in enumerate(par.outs)])
    return replace(par, body=f.Block(tuple(binds), results), outs=outs)


def added(
    body: f.Block, own: Own, acc: f.Var, target: f.Var | None, supply: f.Supply
) -> tuple[list[f.Bind], f.Atom]:  # fmt: skip
    """The innermost body with a number in place of the accumulator."""
    ty = own.values[0].ty
    binds: list[f.Bind] = []
    total: f.Atom = f.Const(0.0, ty)
    for bind in body.binds:
        match bind.rhs:
            case f.Op("acc_index", (first, value, *_)) if first == acc:
                if target is not None and isinstance(total, f.Const):
                    total = f.Var(supply.fresh("x"), ty)
                    places = tuple([index for level in own.levels for index, _ in level.par.space])
                    binds.append(f.Bind((total,), f.Op("index", (target, *places), (("unchecked", True),))))
                both = f.Var(supply.fresh("added"), ty)
                binds.append(f.Bind((both,), f.Op("acc_add", (total, value))))
                total, acc = both, bind.vars[0]
            case _:
                binds.append(bind)
    return binds, total
