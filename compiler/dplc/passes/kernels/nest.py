"""Nests of Pars that can be run as one space: a Par whose body ends in another Par of a known length.

    b = par i < n to keep {                    the levels: par i < n, with what comes before the inner one;
      y = ...                                              par j < m
      r = par j < m to keep { ...; yield x }
      yield r }
"""

from __future__ import annotations

from dpl.node import node

from dplc.flat import term as f
from dplc.flat.walk import atoms


@node
class Level:
    """One Par of a nest: what its body does before the inner Par, and after it (only drops)."""

    par: f.Par
    before: tuple[f.Bind, ...]
    after: tuple[f.Bind, ...]


def nest(par: f.Par) -> list[Level]:
    """The Pars, outermost first."""
    levels = []
    while True:
        binds = par.body.binds
        at = next((i for i, bind in enumerate(binds) if bind.vars and bind.vars == par.body.results), -1)
        inner = binds[at].rhs if at >= 0 else None
        if not isinstance(inner, f.Par) or not all(_is_drop(bind) for bind in binds[at + 1 :]):
            break
        if any(out.kind != "keep" or out.target is not None for out in (*par.outs, *inner.outs)):
            break
        own = {var for var, _ in par.space} | {var for bind in binds for var in bind.vars}
        if any(atom in own for atom in atoms(inner)):
            break
        levels.append(Level(par, binds[:at], binds[at + 1 :]))
        par = inner
    return [*levels, Level(par, par.body.binds, ())]


def _is_drop(bind: f.Bind) -> bool:
    return isinstance(bind.rhs, f.Op) and bind.rhs.op == "drop"
