"""Nests of Pars that can be run as one space: a Par whose body ends in another Par of a known length.

    b = par i < n to keep {                    the levels: par i < n, with what comes before the inner one;
      y = ...                                              par j < m
      r = par j < m to keep { ...; yield x }
      yield r }

What the outermost Par writes over, a target, is written by the innermost one, number by number.
"""

from __future__ import annotations

from dpl.node import node, replace

from dplc.flat import term as f
from dplc.flat.walk import atoms


@node
class Level:
    """One Par of a nest: what its body does before the inner Par, and after it (only drops)."""

    par: f.Par
    before: tuple[f.Bind, ...]
    after: tuple[f.Bind, ...]


def nest(par: f.Par) -> list[Level]:
    """The Pars, outermost first; rows of numbers only are written over targets."""
    levels = levels_of(par)
    leaf = levels[-1].par
    over_rows = any(out.target is not None and not isinstance(result.ty, f.Num)
                    for out, result in zip(leaf.outs, leaf.body.results, strict=True))  # fmt: skip
    return [Level(par, par.body.binds, ())] if over_rows else levels


def levels_of(par: f.Par) -> list[Level]:
    levels: list[Level] = []
    own = set[f.Var]()  # what the levels bind so far: counts of an inner Par are known before the nest
    while True:
        binds = par.body.binds
        at = next((i for i, bind in enumerate(binds) if bind.vars and bind.vars == par.body.results), -1)
        inner = binds[at].rhs if at >= 0 else None
        if not isinstance(inner, f.Par) or not all(_is_drop(bind) for bind in binds[at + 1 :]):
            break
        if any(out.kind != "keep" for out in (*par.outs, *inner.outs)) or any(out.target for out in inner.outs):
            break
        own |= {var for var, _ in par.space} | {var for bind in binds for var in bind.vars}
        if any(atom in own for atom in atoms(inner)):
            break
        levels.append(Level(par, binds[:at], binds[at + 1 :]))
        par = handed(par, inner)
    return [*levels, Level(par, par.body.binds, ())]


def handed(outer: f.Par, inner: f.Par) -> f.Par:
    """The inner Par, with the targets of the outer one."""
    if not any(out.target for out in outer.outs):
        return inner
    outs = [replace(own, target=out.target) for own, out in zip(inner.outs, outer.outs, strict=True)]
    return replace(inner, outs=tuple(outs))


def _is_drop(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "drop"
