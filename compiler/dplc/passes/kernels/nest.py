"""Nests of Pars that can be run as one space: a Par whose body ends in another Par of a known length.

    b = par i < n to keep {                    the levels: par i < n, with what comes before the inner one;
      y = ...                                              par j < m
      r = par j < m to keep { ...; yield x }
      yield r }

What the outermost Par writes over, a target, is written by the innermost one, number by number.  Sums beside what is
kept are those of each Par: what the inner one adds up is one number of the outer one.
"""

from __future__ import annotations

from math import prod
from operator import or_

from dpl.node import node, replace
from dpl.prims.sums import FEW

from dplc.flat import term as f
from dplc.flat.walk import atoms


@node
class Level:
    """One Par of a nest: what its body does before the inner Par, and after it (only drops)."""

    par: f.Par
    before: tuple[f.Bind, ...]
    after: tuple[f.Bind, ...]


def nest(par: f.Par, with_sums: bool = False) -> list[Level]:
    """The Pars, outermost first; rows of numbers only are written over targets."""
    levels = levels_of(par, with_sums)
    leaf = levels[-1].par
    over_rows = any(out.target is not None and not isinstance(result.ty, f.Num)
                    for out, result in zip(leaf.outs, leaf.body.results, strict=True))  # fmt: skip
    return [Level(par, par.body.binds, ())] if over_rows else levels


def levels_of(par: f.Par, with_sums: bool) -> list[Level]:
    levels: list[Level] = []
    own = set[f.Var]()  # what the levels bind so far: counts of an inner Par are known before the nest
    while True:
        binds = par.body.binds
        at = next((i for i, bind in enumerate(binds) if bind.vars and bind.vars == par.body.results), -1)
        inner = binds[at].rhs if at >= 0 else None
        if not isinstance(inner, f.Par) or not all(_is_drop(bind) for bind in binds[at + 1 :]):
            break
        if not kept_alike(par, inner, with_sums) or any(out.target for out in inner.outs):
            break
        own |= {var for var, _ in par.space} | {var for bind in binds for var in bind.vars}
        if any(atom in own for atom in atoms(inner)):
            break
        levels.append(Level(par, binds[:at], binds[at + 1 :]))
        par = handed(par, inner)
    return [*levels, Level(par, par.body.binds, ())]


def kept_alike(outer: f.Par, inner: f.Par, with_sums: bool) -> bool:
    """True if what the inner Par keeps the outer one keeps, and what it adds up the outer one adds up."""
    pairs = list(zip(outer.outs, inner.outs, strict=True))
    kept = [one.kind == other.kind == "keep" for one, other in pairs]
    sums = [one == other == f.Out("fold") and f.is_float(x.ty)
            for (one, other), x in zip(pairs, inner.body.results, strict=True)]  # fmt: skip
    if all(kept) or not with_sums:
        return all(kept)
    return any(kept) and all(map(or_, kept, sums)) and is_large(outer) and is_large(inner)


def is_large(par: f.Par) -> bool:
    """False if its points are known to be so few that numbers are added in order."""
    counts = [count.value for _, count in par.space if isinstance(count, f.Const) and isinstance(count.value, int)]
    return len(counts) < len(par.space) or prod(counts) >= FEW


def handed(outer: f.Par, inner: f.Par) -> f.Par:
    """The inner Par, with the targets of the outer one."""
    if not any(out.target for out in outer.outs):
        return inner
    outs = [replace(own, target=out.target) for own, out in zip(inner.outs, outer.outs, strict=True)]
    return replace(inner, outs=tuple(outs))


def _is_drop(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "drop"
